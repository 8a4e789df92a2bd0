//! The end of Q9: profit per line, sums by nation and year.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use arrow::array::{AsArray, Date32Array};
use arrow::compute::{DatePart, date_part};
use arrow::datatypes::Int32Type;

use crate::drivers::BenchError;
use crate::tpch::{Answer, TpchError};

/// What is summed up, and by what.
pub(super) const PROFIT_SLOTS: [&str; 6] = [
    "s_nationkey",
    "o_orderdate",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "ps_supplycost",
];

/// One, in the hundredths that discounts have.
const WHOLE: i64 = 100;
/// Two decimals of two digits, multiplied.
const DIGITS: usize = 4;

/// A map by whole numbers.
pub(super) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Multiplies and folds: enough for keys that nobody chooses to harm us.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u64(u64::from(number.cast_unsigned()));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Sums by nation and year, in ten-thousandths.
#[derive(Debug, Default)]
pub(super) struct Profits(NumberMap<(i64, i32), i128>);

impl Profits {
    /// Adds rows: the columns of [`PROFIT_SLOTS`], dates as days, the rest unscaled.
    pub(super) fn add(&mut self, columns: [&[i64]; 6]) -> Result<(), BenchError> {
        let [nations, dates, quantities, prices, discounts, costs] = columns;
        // Dates are of 32 bits where they come from.
        let dates = Date32Array::from_iter_values(dates.iter().map(|day| *day as i32));
        let years = date_part(&dates, DatePart::Year).map_err(TpchError::from)?;
        let years = years.as_primitive::<Int32Type>().values();
        for (row, (nation, year)) in nations.iter().zip(years).enumerate() {
            let price = prices[row] * (WHOLE - discounts[row]);
            let amount = price - costs[row] * quantities[row];
            *self.0.entry((*nation, *year)).or_default() += i128::from(amount);
        }
        Ok(())
    }

    /// Adds the sums of other rows.
    pub(super) fn merge(&mut self, other: Self) {
        for (key, sum) in other.0 {
            *self.0.entry(key).or_default() += sum;
        }
    }

    /// By the name of the nation, the last year first.
    pub(super) fn answer(self, names: &NumberMap<i64, String>) -> Answer {
        let unknown = String::new();
        let mut rows: Vec<(&String, Reverse<i32>, i128)> = self
            .0
            .iter()
            .map(|((nation, year), sum)| {
                let name = names.get(nation).unwrap_or(&unknown);
                (name, Reverse(*year), *sum)
            })
            .collect();
        rows.sort_unstable();
        let rows = rows
            .into_iter()
            .map(|(name, Reverse(year), sum)| vec![name.clone(), year.to_string(), decimal(sum)]);
        Answer::of_texts(rows.collect())
    }
}

fn decimal(sum: i128) -> String {
    let sign = if sum < 0 { "-" } else { "" };
    let unit = 10_u128.pow(DIGITS as u32);
    let sum = sum.unsigned_abs();
    format!("{sign}{}.{:0DIGITS$}", sum / unit, sum % unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpch::Query;

    #[test]
    fn profits_are_summed_by_nation_and_year_to_the_last_digit() {
        let names = [(1, "ALGERIA".to_owned()), (2, "BRAZIL".to_owned())];
        let names = names.into_iter().collect();
        // 1995-10-21 and two days of the year after; 100.00 * (1 - 0.05) - 1.01 * 2.
        let mut profits = Profits::default();
        let add = |profits: &mut Profits, nation, day, price| {
            profits
                .add([&[nation], &[day], &[200], &[price], &[5], &[101]])
                .unwrap();
        };
        add(&mut profits, 2, 9_424, 10_000);
        let mut others = Profits::default();
        add(&mut others, 2, 9_600, 0);
        add(&mut others, 2, 9_601, 10_000);
        add(&mut others, 1, 9_424, 1);
        profits.merge(others);
        let right = "n,y,p\nALGERIA,1995,-2.0105\nBRAZIL,1996,90.9600\nBRAZIL,1995,92.9800\n";
        let right = Answer::read_csv(right.as_bytes()).unwrap();
        assert_eq!(profits.answer(&names), right);
        assert!(Query::numbered(9).is_some_and(|query| query.columns.len() == 3));
    }
}
