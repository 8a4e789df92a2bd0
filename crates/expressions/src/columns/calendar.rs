//! `YEAR`, `MONTH` and `DAY` of dates that stand in their ids, from id to id.
//!
//! The parts of the local day are computed with integers (`orrery_term::inline`), once for each different id as far as a small table
//! remembers: dates of a data set are few, and come again and again. As values, each batch's ids had to be sorted or hashed for every part, and
//! the calendar of `xsd:dateTime` is one of 128 bits (by_month of `orrery bench relational`: half of its time). A column that has anything but
//! inline dates and date-times goes the general way.

use arrow::array::{Array, UInt64Array};
use orrery_term::TermId;
use orrery_term::inline::InlineValue;

/// So many ids at most are remembered with their part; a power of two. Of the days of a year few then have the same place.
const REMEMBERED_MAX: usize = 4_096;
/// Rows for each place of the table: to clear it costs little beside them.
const ROWS_PER_PLACE: usize = 4;
/// With fewer rows nothing is remembered: the table would cost more than it saves.
const REMEMBERED_ROWS_MIN: usize = 256;

/// Which part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalendarPart {
    Year,
    Month,
    Day,
}

impl CalendarPart {
    /// The part of a date's id, if it is one.
    #[inline]
    fn of(self, id: TermId) -> Option<TermId> {
        let (year, month, day) = match id.inline_value()? {
            InlineValue::Date(date) => date.year_month_day(),
            InlineValue::DateTime(date_time) => date_time.year_month_day(),
            InlineValue::Boolean(_)
            | InlineValue::Integer(..)
            | InlineValue::Decimal(_)
            | InlineValue::Double(_)
            | InlineValue::String(_) => return None,
        };
        TermId::integer(match self {
            Self::Year => year,
            Self::Month => month.into(),
            Self::Day => day.into(),
        })
    }
}

/// The parts of all rows, if all ids are dates; null where there is none.
pub(crate) fn parts_of_dates(part: CalendarPart, ids: &UInt64Array) -> Option<UInt64Array> {
    let mut parts = Vec::with_capacity(ids.len());
    if ids.len() < REMEMBERED_ROWS_MIN {
        for (row, &bits) in ids.values().iter().enumerate() {
            parts.push(match ids.is_valid(row) {
                true => part.of(TermId::from_bits(bits))?.bits(),
                false => 0,
            });
        }
    } else {
        // No term has the id 0.
        let places = (ids.len() / ROWS_PER_PLACE).next_power_of_two();
        let places = places.min(REMEMBERED_MAX);
        let mut remembered = vec![(0_u64, 0_u64); places];
        for (row, &bits) in ids.values().iter().enumerate() {
            if ids.is_null(row) {
                parts.push(0);
                continue;
            }
            let place = &mut remembered[place_of(bits, places)];
            if place.0 != bits {
                *place = (bits, part.of(TermId::from_bits(bits))?.bits());
            }
            parts.push(place.1);
        }
    }
    Some(UInt64Array::new(parts.into(), ids.nulls().cloned()))
}

/// The place of an id among a power of two: the top bits of a product (Knuth's multiplicative hashing).
#[inline]
fn place_of(bits: u64, places: usize) -> usize {
    (bits.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - places.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use orrery_term::inline_typed;
    use orrery_term::vocabulary::xsd;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::values::value::Value;

    fn expected(part: CalendarPart, bits: u64) -> Option<u64> {
        let year_month_day = match Value::from_inline(TermId::from_bits(bits))? {
            Value::Date(date) => [date.year(), date.month().into(), date.day().into()],
            Value::DateTime(date) => [date.year(), date.month().into(), date.day().into()],
            _ => return None,
        };
        let value = Value::integer(year_month_day[part as usize]);
        Some(value.to_inline().unwrap().bits())
    }

    fn date() -> impl Strategy<Value = u64> {
        let zone = prop_oneof![
            3 => Just(String::new()),
            1 => Just("Z".to_owned()),
            1 => (0u8..14, 0u8..60, any::<bool>()).prop_map(|(hours, minutes, is_west)| {
                format!("{}{hours:02}:{minutes:02}", if is_west { "-" } else { "+" })
            }),
        ];
        let day = prop_oneof![
            (0u32..4_000, 1u8..13, 1u8..29),
            (2007u32..2009, 1u8..3, 27u8..29)
        ];
        let time = option::of((0u8..24, 0u8..60, 0u8..60));
        (day, time, zone).prop_filter_map("no date", |((year, month, day), time, zone)| {
            let day = format!("{year:04}-{month:02}-{day:02}");
            let id = match time {
                None => inline_typed(&format!("{day}{zone}"), xsd::DATE),
                Some((h, m, s)) => {
                    inline_typed(&format!("{day}T{h:02}:{m:02}:{s:02}{zone}"), xsd::DATE_TIME)
                }
            };
            id.map(TermId::bits)
        })
    }

    proptest! {
        #[test]
        fn parts_are_those_of_the_values(
            dates in vec(date(), 1..60),
            rows in vec(option::weighted(0.95, any::<prop::sample::Index>()), 0..600),
        ) {
            let ids: UInt64Array = rows.iter().map(|row| row.map(|row| dates[row.index(dates.len())])).collect();
            for part in [CalendarPart::Year, CalendarPart::Month, CalendarPart::Day] {
                let expected: Vec<Option<u64>> =
                    ids.iter().map(|id| id.and_then(|id| expected(part, id))).collect();
                let parts = parts_of_dates(part, &ids).unwrap();
                prop_assert_eq!(parts.iter().collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_column_with_anything_else_is_left_alone() {
        let date = inline_typed("2008-02-29", xsd::DATE).unwrap().bits();
        let others = [
            TermId::iri(7),
            TermId::literal(7),
            TermId::integer(2008).unwrap(),
            TermId::blank_node(1),
            inline_typed("2008", xsd::STRING).unwrap(),
        ];
        for other in others {
            for rows in [3, 1_000] {
                let mut ids = vec![date; rows];
                ids[rows / 2] = other.bits();
                let ids = UInt64Array::from(ids);
                assert!(parts_of_dates(CalendarPart::Year, &ids).is_none());
            }
        }
        let empty = UInt64Array::from(Vec::<u64>::new());
        assert_eq!(parts_of_dates(CalendarPart::Year, &empty).unwrap().len(), 0);
    }
}
