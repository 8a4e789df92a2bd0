//! A bit set of a hash join's build keys, which filters the scan of the probe side.
//!
//! A scan that knows them reads no row that finds nothing. The hash table of the join could say the
//! same, row by row, by hashing each key; integers of a range that is not much larger than the
//! table are one bit each:
//!
//! ```text
//! join                                    the rule (share) finds a join with one key of integers whose other side comes from a scan
//! ├ KeysExec    sets the bits of its rows (keys)    all partitions done -> the bits are complete
//! └ ... ScanExec    asks them before all else that is dear    (stream)
//! ```
//!
//! They are a hint: as long as they are not complete, nobody asks them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{DataType, Date32Type, Int16Type, Int32Type, Int64Type};
use datafusion::execution::memory_pool::MemoryReservation;
use orrery_storage::table::ColumnId;
use parking_lot::Mutex;

use super::bits::bits_of;

/// Bits of a word.
const WORD: u64 = 64;

/// Keys between two bounds.
#[derive(Debug)]
pub(super) struct KeyBits {
    least: i64,
    /// How many values lie between the bounds.
    range: u64,
    words: OnceLock<Box<[AtomicU64]>>,
    /// Held as long as the bits are.
    memory: Mutex<Option<MemoryReservation>>,
    partitions: Mutex<Partitions>,
    is_complete: AtomicBool,
    /// How many bits are set, once they are complete.
    set: AtomicU64,
}

/// The keys that a scan can ask for.
#[derive(Debug, Clone)]
pub(super) struct SharedKeys {
    /// The filter of the join that has them, if that was told to the scan.
    pub(super) filter: Option<u64>,
    /// The column of the table that is compared with them.
    pub(super) column: ColumnId,
    pub(super) bits: Arc<KeyBits>,
}

/// Which partitions have begun, and how many are done.
#[derive(Debug)]
struct Partitions {
    began: Vec<bool>,
    left: usize,
    /// One of them began twice, or there was no memory: the bits are never complete.
    is_spoiled: bool,
}

impl KeyBits {
    /// Of keys from `least` to `greatest`, which so many partitions have.
    pub(super) fn new(least: i64, greatest: i64, partitions: usize) -> Option<Self> {
        if greatest < least {
            return None;
        }
        let range = greatest.abs_diff(least).checked_add(1)?;
        Some(Self {
            least,
            range: range.checked_next_multiple_of(WORD)?,
            words: OnceLock::new(),
            memory: Mutex::new(None),
            partitions: Mutex::new(Partitions {
                began: vec![false; partitions],
                left: partitions,
                is_spoiled: false,
            }),
            is_complete: AtomicBool::new(false),
            set: AtomicU64::new(0),
        })
    }

    /// A partition begins. `memory` is asked for the room of the bits.
    pub(super) fn begin(&self, partition: usize, memory: impl FnOnce() -> MemoryReservation) {
        let mut partitions = self.partitions.lock();
        match partitions.began.get_mut(partition) {
            Some(began) if !*began => *began = true,
            _ => {
                partitions.is_spoiled = true;
                self.is_complete.store(false, Ordering::Release);
                return;
            }
        }
        let mut held = self.memory.lock();
        if held.is_none() && !partitions.is_spoiled {
            let words = self.range.div_ceil(WORD) as usize;
            let memory = memory();
            match memory.try_grow(words * size_of::<u64>()) {
                Ok(()) => {
                    let _ = self
                        .words
                        .set((0..words).map(|_| AtomicU64::new(0)).collect());
                    *held = Some(memory);
                }
                Err(_) => partitions.is_spoiled = true,
            }
        }
    }

    /// A partition has given all of its rows.
    pub(super) fn end(&self) {
        let mut partitions = self.partitions.lock();
        partitions.left = partitions.left.saturating_sub(1);
        if partitions.left > 0 || partitions.is_spoiled {
            return;
        }
        let words = self.words.get().into_iter().flatten();
        let set = words.map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()));
        self.set.store(set.sum(), Ordering::Relaxed);
        self.is_complete.store(true, Ordering::Release);
    }

    /// Sets the bits of some keys; keys outside of the bounds, and NULL, have none.
    pub(super) fn insert(&self, keys: &ArrayRef) {
        let Some(words) = self.words.get() else {
            return;
        };
        match keys.data_type() {
            DataType::Int16 => self.insert_all(words, keys.as_primitive::<Int16Type>()),
            DataType::Int32 => self.insert_all(words, keys.as_primitive::<Int32Type>()),
            DataType::Int64 => self.insert_all(words, keys.as_primitive::<Int64Type>()),
            DataType::Date32 => self.insert_all(words, keys.as_primitive::<Date32Type>()),
            _ => self.partitions.lock().is_spoiled = true,
        }
    }

    fn insert_all<T>(&self, words: &[AtomicU64], keys: &PrimitiveArray<T>)
    where
        T: ArrowPrimitiveType<Native: Into<i64>>,
    {
        // Keys that follow one another are often in the same word.
        let (mut at, mut bits) = (0, 0);
        let write = |at: u64, bits: u64| {
            if let Some(word) = words.get(at as usize)
                && word.load(Ordering::Relaxed) & bits != bits
            {
                word.fetch_or(bits, Ordering::Relaxed);
            }
        };
        let mut insert = |key: T::Native| {
            let place = key.into().wrapping_sub(self.least).cast_unsigned();
            if place >= self.range {
                return;
            }
            if place / WORD != at {
                write(at, bits);
                (at, bits) = (place / WORD, 0);
            }
            bits |= 1 << (place % WORD);
        };
        match keys.null_count() {
            0 => keys.values().iter().for_each(|key| insert(*key)),
            _ => keys.iter().flatten().for_each(insert),
        }
        write(at, bits);
    }

    /// Whether all keys are there.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    /// Whether so few are set that it is worth asking them before anything else.
    pub(super) fn is_selective(&self) -> bool {
        self.set.load(Ordering::Relaxed) < self.range / 4
    }

    /// Which of some values are keys, of bits that are complete. Values outside of the bounds may
    /// be keys.
    pub(super) fn has(&self, values: &[i64]) -> BooleanBuffer {
        let words = self.words.get().map_or(&[][..], |words| words);
        let least = self.least;
        bits_of(values, |value| {
            let place = value.wrapping_sub(least).cast_unsigned();
            match words.get((place / WORD) as usize) {
                Some(word) => word.load(Ordering::Relaxed) >> (place % WORD) & 1 == 1,
                None => true,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, Int64Array, StringArray};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use super::*;

    fn memory(bytes: usize) -> MemoryReservation {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        MemoryConsumer::new("test").register(&pool)
    }

    fn numbers(values: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(Int64Array::from(values))
    }

    #[test]
    fn what_was_inserted_is_there_and_nothing_else() {
        for (least, greatest) in [(-70, 200), (0, 0), (i64::MIN, i64::MIN + 300)] {
            let bits = KeyBits::new(least, greatest, 2).unwrap();
            bits.begin(0, || memory(1 << 20));
            bits.begin(1, || memory(1 << 20));
            let key = |value: i64| least.checked_add(value).filter(|key| *key <= greatest);
            // Out of order, twice, beyond the bounds, and NULL.
            let inserted = [
                key(70),
                key(3),
                key(4),
                None,
                key(3),
                key(270),
                Some(i64::MAX),
            ];
            bits.insert(&numbers(inserted.to_vec()));
            bits.end();
            assert!(!bits.is_complete(), "one partition is missing");
            bits.insert(&numbers(vec![Some(least)]));
            bits.end();
            assert!(bits.is_complete());
            let all: Vec<i64> = (0..=greatest.abs_diff(least))
                .filter_map(|it| key(it as i64))
                .collect();
            let found = bits.has(&all);
            for (place, value) in all.iter().enumerate() {
                let is_inserted = inserted.contains(&Some(*value)) || *value == least;
                assert_eq!(found.value(place), is_inserted, "{value}");
            }
        }
    }

    #[test]
    fn other_widths_are_the_same_numbers() {
        let bits = KeyBits::new(-5, 90, 1).unwrap();
        bits.begin(0, || memory(1 << 20));
        bits.insert(&(Arc::new(Int32Array::from(vec![-5, 90])) as ArrayRef));
        bits.end();
        let found = bits.has(&[-5, 0, 90]);
        assert_eq!(found.iter().collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn bits_that_are_not_sure_are_never_complete() {
        // A partition runs again.
        let bits = KeyBits::new(0, 9, 1).unwrap();
        bits.begin(0, || memory(1 << 20));
        bits.end();
        assert!(bits.is_complete());
        bits.begin(0, || memory(1 << 20));
        assert!(!bits.is_complete());
        bits.end();
        assert!(!bits.is_complete());
        // There is no memory.
        let bits = KeyBits::new(0, 1 << 20, 1).unwrap();
        bits.begin(0, || memory(1024));
        bits.insert(&numbers(vec![Some(1)]));
        bits.end();
        assert!(!bits.is_complete());
        // Keys of another type.
        let bits = KeyBits::new(0, 9, 1).unwrap();
        bits.begin(0, || memory(1 << 20));
        bits.insert(&(Arc::new(StringArray::from(vec!["x"])) as ArrayRef));
        bits.end();
        assert!(!bits.is_complete());
        assert!(KeyBits::new(1, 0, 1).is_none());
        assert!(KeyBits::new(i64::MIN, i64::MAX, 1).is_none());
    }
}
