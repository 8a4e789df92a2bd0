//! `YEAR`, `MONTH` and `DAY` of inline dates, computed from id to id.
//!
//! ```text
//! ids of one kind and zone  -> local day -> table of the days of the batch     where these are no more than its rows
//! others                    -> table of ids that came lately -> calendar       dates of a data set are few, and come again and again
//! ```
//!
//! The parts of the local day are computed with integers (`orrery_term::inline`). As values, each
//! batch's ids had to be sorted or hashed for every part, and the calendar of `xsd:dateTime` is one
//! of 128 bits (by_month of `orrery bench relational`: half of its time). A column that has
//! anything but inline dates and date-times goes the general way.

use arrow::array::{Array, UInt64Array};
use orrery_term::TermId;
use orrery_term::inline::{InlineValue, LocalDays, civil_from_days, days_from_civil};

use crate::columns::compare_alike::are_alike;

/// So many ids at most are remembered with their part; a power of two. Of the days of a year few
/// then have the same place.
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
        self.among(year, month, day)
    }

    #[inline]
    fn among(self, year: i64, month: u8, day: u8) -> Option<TermId> {
        TermId::integer(match self {
            Self::Year => year,
            Self::Month => month.into(),
            Self::Day => day.into(),
        })
    }

    /// The part of each of some days that follow one another. The calendar is asked once a month.
    fn of_days(self, first: i64, days: usize) -> Option<Vec<u64>> {
        let mut parts = Vec::with_capacity(days);
        while parts.len() < days {
            let day = first + parts.len() as i64;
            let (year, month, day_of_month) = civil_from_days(day);
            let (next_year, next_month) = match month {
                12 => (year + 1, 1),
                _ => (year, i64::from(month) + 1),
            };
            let left = (days_from_civil(next_year, next_month, 1) - day) as usize;
            for day_of_month in (day_of_month..).take(left.min(days - parts.len())) {
                parts.push(self.among(year, month, day_of_month)?.bits());
            }
        }
        Some(parts)
    }
}

/// The parts of all rows, if all ids are dates; null where there is none.
pub(crate) fn parts_of_dates(part: CalendarPart, ids: &UInt64Array) -> Option<UInt64Array> {
    if let Some(parts) = parts_by_day(part, ids) {
        return Some(parts);
    }
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

/// The parts of all rows, if the ids are dates of one kind and zone that lie no more days apart
/// than there are rows, and none is null.
fn parts_by_day(part: CalendarPart, ids: &UInt64Array) -> Option<UInt64Array> {
    let first = TermId::from_bits(*ids.values().first()?);
    let (days, order) = (LocalDays::of(first)?, first.value_order()?);
    if ids.len() < REMEMBERED_ROWS_MIN
        || ids.null_count() > 0
        || !are_alike(ids.values(), first.bits(), order.alike)
    {
        return None;
    }
    // Days ascend with ids.
    let (low, high) = (ids.values().iter().min()?, ids.values().iter().max()?);
    let (low, high) = (TermId::from_bits(*low), TermId::from_bits(*high));
    let (low, high) = (days.day(low), days.day(high));
    let width = usize::try_from(high - low).ok()? + 1;
    if width > ids.len() {
        return None;
    }
    let parts = part.of_days(low, width)?;
    let of = |&bits: &u64| {
        let place = days.day(TermId::from_bits(bits)) - low;
        parts.get(place as usize).copied()
    };
    let found: Option<Vec<u64>> = ids.values().iter().map(of).collect();
    Some(UInt64Array::new(found?.into(), None))
}

/// The place of an id among a power of two: the top bits of a product (Knuth's multiplicative
/// hashing).
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

    /// All days of 400 years, and the milliseconds before and after midnight, in zones on both
    /// sides.
    #[test]
    fn days_that_lie_close_together_are_looked_up_by_their_number() {
        let mut columns: Vec<Vec<String>> = Vec::new();
        for zone in ["", "Z", "-14:00", "+14:00", "+05:30"] {
            let days = |year: u32| {
                let of_month = move |month: u32| {
                    (1..29u32).map(move |day| format!("{year:04}-{month:02}-{day:02}"))
                };
                (1..13u32).flat_map(of_month)
            };
            let years = [0, 3, 1899, 1900, 1999, 2000, 2008].map(days);
            for dates in years {
                let dates: Vec<String> = dates.collect();
                columns.push(dates.iter().map(|date| format!("{date}{zone}")).collect());
                let times = ["00:00:00", "23:59:59.999", "12:30:00.5"];
                for time in times {
                    columns.push(
                        dates
                            .iter()
                            .map(|date| format!("{date}T{time}{zone}"))
                            .collect(),
                    );
                }
            }
        }
        let mut by_day = 0;
        for column in &columns {
            let id = |text: &String| {
                let datatype = if text.contains('T') {
                    xsd::DATE_TIME
                } else {
                    xsd::DATE
                };
                inline_typed(text, datatype).map(TermId::bits)
            };
            // Those of the year 0 that are before it in UTC are not inline.
            let mut ids: Vec<u64> = column.iter().filter_map(id).collect();
            ids.extend(ids.clone());
            let ids = UInt64Array::from(ids);
            for part in [CalendarPart::Year, CalendarPart::Month, CalendarPart::Day] {
                let parts = parts_by_day(part, &ids).unwrap();
                by_day += parts.len();
                for (found, id) in parts.iter().zip(ids.iter().flatten()) {
                    assert_eq!(found, expected(part, id));
                }
            }
        }
        assert!(by_day > 100_000);
        let distant =
            ["0001-01-01", "2008-01-01"].map(|text| inline_typed(text, xsd::DATE).unwrap().bits());
        let distant = UInt64Array::from(distant.repeat(300));
        assert!(parts_by_day(CalendarPart::Year, &distant).is_none());
        assert!(parts_of_dates(CalendarPart::Year, &distant).is_some());
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
