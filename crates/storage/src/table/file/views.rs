//! Arrow view arrays of texts and blobs, built without a second check of UTF-8.
//!
//! Arrow checks each view of an array on its own, whether it lies within its buffer and is UTF-8:
//! some 15 ns a value. Here whole vectors of values are checked at once when they were
//! decompressed, and the values of a dictionary when it is read; what is made of these is put
//! together without a check, which is about 1 ns a value. This is the only `unsafe` code of this
//! room.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, StringViewArray, make_view};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};

use super::super::types::ColumnType;
use super::Decoded;

/// A buffer is finished once it has so many bytes: offsets in views have 32 bits with sign.
const BUFFER_BYTES: usize = 1 << 26;

/// Values that lie back to back, checked.
#[derive(Debug)]
pub(super) struct CheckedValues {
    is_text: bool,
    bytes: Buffer,
    ends: Vec<u32>,
    /// Views into `bytes` as buffer 0. Invariant: valid, and of texts UTF-8.
    views: Vec<u128>,
}

impl CheckedValues {
    /// Copies the bytes and checks them. Each value ends where `ends` says.
    pub(super) fn new(column_type: ColumnType, bytes: &[u8], ends: &[usize]) -> Decoded<Self> {
        let is_text = column_type != ColumnType::Blob;
        check(is_text, bytes, 0, ends)?;
        let mut views = Vec::with_capacity(ends.len());
        let mut start = 0;
        for &end in ends {
            views.push(make_view(&bytes[start..end], 0, start as u32));
            start = end;
        }
        Ok(Self {
            is_text,
            bytes: Buffer::from(bytes),
            ends: ends.iter().map(|&end| end as u32).collect(),
            views,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)? as usize;
        let start = number
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        self.bytes.get(start..end)
    }

    /// All of them as an array.
    pub(super) fn array(&self) -> ArrayRef {
        let mut builder = ViewBuilder::new(self.is_text, Some(self), self.len());
        builder.views.extend_from_slice(&self.views);
        builder.finish(None)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.len() * (size_of::<u32>() + size_of::<u128>())
    }
}

/// Checks that values lie within the bytes, and that texts are UTF-8 and begin and end between
/// characters.
fn check(is_text: bool, bytes: &[u8], start: usize, ends: &[usize]) -> Decoded<()> {
    let last = ends.last().copied().unwrap_or(start);
    let is_ordered = ends.first().is_none_or(|&first| start <= first)
        && ends.is_sorted()
        && last <= bytes.len()
        && i32::try_from(last).is_ok();
    if !is_ordered {
        return Err("values do not lie within their bytes");
    }
    if is_text {
        let text = std::str::from_utf8(&bytes[start..last]).map_err(|_| "a text is not UTF-8")?;
        if !text.is_ascii() && !ends.iter().all(|&end| text.is_char_boundary(end - start)) {
            return Err("a text is not UTF-8");
        }
    }
    Ok(())
}

/// An array of texts or blobs in the making.
#[derive(Debug)]
pub(super) struct ViewBuilder {
    is_text: bool,
    buffers: Vec<Buffer>,
    /// The buffer being filled: the one behind `buffers`.
    bytes: Vec<u8>,
    /// Invariant: each is valid for `buffers` and `bytes`, and of texts UTF-8.
    views: Vec<u128>,
    /// Length of `buffers` without the one of the dictionary.
    dictionaries: usize,
}

impl ViewBuilder {
    /// With room for so many rows. The dictionary is that of all codes that will be appended.
    pub(super) fn new(is_text: bool, dictionary: Option<&CheckedValues>, rows: usize) -> Self {
        // Texts and blobs have dictionaries of their own.
        debug_assert!(dictionary.is_none_or(|dictionary| dictionary.is_text == is_text));
        Self {
            is_text,
            buffers: dictionary
                .iter()
                .map(|values| values.bytes.clone())
                .collect(),
            bytes: Vec::new(),
            views: Vec::with_capacity(rows),
            dictionaries: usize::from(dictionary.is_some()),
        }
    }

    /// Appends rows without a value.
    pub(super) fn append_nulls(&mut self, rows: usize) {
        self.views.resize(self.views.len() + rows, 0);
    }

    /// Appends rows by their codes of a group, which `codes` turns into codes of the dictionary:
    /// the one that the builder was made with.
    pub(super) fn append_codes(
        &mut self,
        dictionary: &CheckedValues,
        codes: &[u32],
        rows: &[u64],
    ) -> Decoded<()> {
        assert!(
            self.dictionaries == 1
                && self.is_text == dictionary.is_text
                && self.buffers[0].as_ptr() == dictionary.bytes.as_ptr()
        );
        // As many tests as there are rows, but the branches are never taken.
        let mut is_known = true;
        self.views.extend(rows.iter().map(|&row| {
            let code = codes.get(row as usize);
            match code.and_then(|&code| dictionary.views.get(code as usize)) {
                Some(&view) => view,
                None => {
                    is_known = false;
                    0
                }
            }
        }));
        match is_known {
            true => Ok(()),
            false => Err("a code is beyond the dictionary"),
        }
    }

    /// Appends values that lie back to back, the first from `start` on, each up to its end. The
    /// bytes are copied.
    pub(super) fn append_values(
        &mut self,
        bytes: &[u8],
        start: usize,
        ends: &[usize],
    ) -> Decoded<()> {
        check(self.is_text, bytes, start, ends)?;
        let last = ends.last().copied().unwrap_or(start);
        if self.bytes.len() + (last - start) > BUFFER_BYTES {
            self.finish_buffer();
        }
        let buffer = self.buffers.len() as u32;
        let mut offset = self.bytes.len();
        self.bytes.extend_from_slice(&bytes[start..last]);
        let mut from = start;
        self.views.extend(ends.iter().map(|&end| {
            let view = make_view(&bytes[from..end], buffer, offset as u32);
            offset += end - from;
            from = end;
            view
        }));
        Ok(())
    }

    fn finish_buffer(&mut self) {
        if !self.bytes.is_empty() {
            self.buffers
                .push(Buffer::from(std::mem::take(&mut self.bytes)));
        }
    }

    /// The array of all rows.
    pub(super) fn finish(mut self, nulls: Option<NullBuffer>) -> ArrayRef {
        self.finish_buffer();
        let views = ScalarBuffer::from(self.views);
        assert!(
            nulls
                .as_ref()
                .is_none_or(|nulls| nulls.len() == views.len())
        );
        match self.is_text {
            true => {
                // SAFETY: by the invariant of `views`, and the nulls are as many.
                Arc::new(unsafe { StringViewArray::new_unchecked(views, self.buffers, nulls) })
            }
            false => {
                // SAFETY: by the invariant of `views`, and the nulls are as many.
                Arc::new(unsafe { BinaryViewArray::new_unchecked(views, self.buffers, nulls) })
            }
        }
    }
}

// In memory alone, so that Miri runs them (`make miri`).
#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};

    use super::*;

    const TEXT: ColumnType = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };
    const TEXTS: [&str; 4] = ["", "short", "é", "one that is too long for its view"];

    fn laid_out(values: &[&str]) -> (Vec<u8>, Vec<usize>) {
        let bytes = values.concat().into_bytes();
        let mut end = 0;
        let ends = values.iter().map(|value| {
            end += value.len();
            end
        });
        (bytes, ends.collect())
    }

    fn texts(array: &ArrayRef) -> Vec<Option<String>> {
        array.to_data().validate_full().unwrap();
        let array = array.as_string_view().iter();
        array.map(|value| value.map(str::to_owned)).collect()
    }

    #[test]
    fn values_of_a_dictionary_and_others_come_back() {
        let (bytes, ends) = laid_out(&TEXTS);
        let dictionary = CheckedValues::new(TEXT, &bytes, &ends).unwrap();
        let all: Vec<_> = TEXTS.iter().map(|text| Some((*text).to_owned())).collect();
        assert_eq!(texts(&dictionary.array()), all);
        assert_eq!(dictionary.get(3), Some(TEXTS[3].as_bytes()));

        let mut builder = ViewBuilder::new(true, Some(&dictionary), 7);
        builder
            .append_codes(&dictionary, &[3, 0, 1], &[2, 0])
            .unwrap();
        builder.append_nulls(1);
        builder.append_values(&bytes, 5, &ends[2..]).unwrap();
        let nulls = NullBuffer::from(vec![true, true, false, true, true]);
        let array = builder.finish(Some(nulls));
        // What the dictionary held is still there when it is gone.
        drop(dictionary);
        let [one, long, two, again] = [1, 3, 2, 3].map(|at: usize| all[at].clone());
        assert_eq!(texts(&array), [one, long, None, two, again]);
    }

    #[test]
    fn blobs_come_back_whatever_their_bytes() {
        let bytes = [0xff, 0, 0xc3, 0x28];
        let values = CheckedValues::new(ColumnType::Blob, &bytes, &[1, 1, 4]).unwrap();
        let array = values.array();
        array.to_data().validate_full().unwrap();
        let found: Vec<_> = array.as_binary_view().iter().flatten().collect();
        assert_eq!(found, [&bytes[..1], &[], &bytes[1..]]);
    }

    #[test]
    fn what_is_damaged_is_refused_before_there_is_a_view() {
        let values = |bytes: &[u8], ends: &[usize]| {
            CheckedValues::new(TEXT, bytes, ends).map(|values| values.len())
        };
        assert_eq!(values("é".as_bytes(), &[2]), Ok(1));
        assert!(values("é".as_bytes(), &[1, 2]).is_err());
        assert!(values(&[0xff], &[1]).is_err());
        assert!(values(b"ab", &[2, 1]).is_err());
        assert!(values(b"ab", &[3]).is_err());
        let dictionary = CheckedValues::new(TEXT, b"ab", &[1, 2]).unwrap();
        let mut builder = ViewBuilder::new(true, Some(&dictionary), 1);
        assert!(builder.append_codes(&dictionary, &[2], &[0]).is_err());
        assert!(builder.append_codes(&dictionary, &[1], &[1]).is_err());
    }
}
