//! The two plans of Q9, independent of the store.
//!
//! ```text
//! hash     parts whose name has "green" -> a set | partsupp of these, suppliers, orders -> hash tables
//!          lines, a vector at once: part in the set? -> the columns of those that are -> hash tables -> sums
//! index    parts whose name has "green" -> look-ups (`step`) -> sums
//! ```
//!
//! The orders of the look-ups: by the index of parts, part -> lines -> orders -> partsupp ->
//! supplier; by the covering one, whose second part is the supplier, part -> partsupp -> supplier
//! -> lines -> orders. Where a table is stored column by column, each column is a look-up. The
//! scanned table, parts or lines, is divided among the threads; hash tables are built by one.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use std::thread;

use arrow::array::{Array, StringViewArray};
use orrery_storage::table::SomeRows;

use super::profit::{NumberHasher, NumberMap, PROFIT_SLOTS, Profits};
use super::shape::{BY_PART, COVERING, Design};
use super::step::{Pipeline, Steps};
use super::store::{Table, not_text};
use super::tables::Tables;
use super::vector::{Limit, Size, Stop, VectorSize};
use crate::drivers::BenchError;
use crate::tpch::{Answer, TpchTable};

/// What the names of the parts have in them.
const COLOUR: &str = "green";

/// One run of Q9.
#[derive(Clone, Copy)]
pub(super) struct Run<'t> {
    pub(super) design: Design,
    pub(super) tables: &'t Tables,
    pub(super) size: VectorSize,
    pub(super) threads: usize,
    pub(super) limit: Limit,
}

impl<'t> Run<'t> {
    /// The answer, and the size that vectors had in the end.
    pub(super) fn ask(self) -> Result<(Answer, usize), Stop> {
        let (profits, vector_rows) = match self.design {
            Design::Hash => self.hash()?,
            Design::Index | Design::Covering | Design::OneColumn | Design::OneColumnCovering => {
                self.index()?
            }
        };
        Ok((profits.answer(&self.names()?), vector_rows))
    }

    fn of(self, table: TpchTable, column: &'static str) -> Result<&'t Table, BenchError> {
        self.tables.get(self.design.table_of(table, column))
    }

    /// The nations, which are few whatever the plan.
    fn names(self) -> Result<NumberMap<i64, String>, BenchError> {
        let nations = self.of(TpchTable::Nation, "n_name")?;
        let stored = &nations.stored;
        let mut keys = [Vec::new()];
        stored.numbers(SomeRows::Range(0..stored.rows()), &[0], &mut keys)?;
        let names = stored.texts(0..stored.rows(), nations.column("n_name")?)?;
        let names = texts(names.as_ref())?;
        let [keys] = keys;
        let names = keys.into_iter().zip(names.iter().flatten());
        Ok(names.map(|(key, name)| (key, name.to_owned())).collect())
    }

    /// The keys of the parts that are wanted, among some.
    fn parts(self, table: &Table, rows: Range<u64>) -> Result<Vec<i64>, BenchError> {
        let names = table.stored.texts(rows.clone(), table.column("p_name")?)?;
        let names = texts(names.as_ref())?.iter();
        let wanted = rows.zip(names).filter_map(|(row, name)| {
            let is_wanted = name.is_some_and(|name| name.contains(COLOUR));
            is_wanted.then_some(row)
        });
        let wanted: Vec<u64> = wanted.collect();
        let mut keys = [Vec::with_capacity(wanted.len())];
        if !wanted.is_empty() {
            let stored = &table.stored;
            stored.numbers(SomeRows::Ascending(&wanted), &[0], &mut keys)?;
        }
        let [keys] = keys;
        Ok(keys)
    }

    /// Divides the rows of a table among the threads, and adds up what they find.
    fn divided(
        self,
        table: &Table,
        run: impl Fn(Range<u64>) -> Result<(Profits, usize), Stop> + Sync,
    ) -> Result<(Profits, usize), Stop> {
        let rows = table.stored.rows();
        let pieces = self.threads.max(1) as u64;
        let piece = |number: u64| rows * number / pieces..rows * (number + 1) / pieces;
        if pieces == 1 {
            return run(0..rows);
        }
        let run = &run;
        let found: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..pieces)
                .map(|number| scope.spawn(move || run(piece(number))))
                .collect();
            let found = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(Stop::Failed(BenchError::Engine {
                        message: "a thread of a plan has panicked".to_owned(),
                    }))
                })
            });
            found.collect()
        });
        let mut all = (Profits::default(), 0);
        for found in found {
            let (profits, vector_rows) = found?;
            all.0.merge(profits);
            all.1 = all.1.max(vector_rows);
        }
        Ok(all)
    }

    fn index(self) -> Result<(Profits, usize), Stop> {
        let steps = match self.design {
            Design::Covering | Design::OneColumnCovering => self.covering_steps()?,
            Design::Hash | Design::Index | Design::OneColumn => self.index_steps()?,
        };
        let parts = self.of(TpchTable::Part, "p_name")?;
        self.divided(parts, |mut rows| {
            let mut pipeline = Pipeline::new(&steps, self.size, self.limit)?;
            while !rows.is_empty() {
                self.limit.check()?;
                let end = rows.end.min(rows.start + pipeline.rows() as u64);
                let keys = self.parts(parts, rows.start..end)?;
                rows.start = end;
                if !keys.is_empty() {
                    pipeline.push(vec![keys])?;
                }
            }
            pipeline.finish()
        })
    }

    /// By the index of the lines by part.
    fn index_steps(self) -> Result<Steps<'t>, BenchError> {
        let orders = self.of(TpchTable::Orders, "o_orderdate")?;
        let part_suppliers = self.of(TpchTable::PartSupp, "ps_supplycost")?;
        let suppliers = self.of(TpchTable::Supplier, "s_nationkey")?;
        let key = ["l_orderkey", "l_linenumber"];
        let by_part = self.tables.get(BY_PART)?;
        let mut steps = Steps::from("p_partkey").look_up(by_part, &["p_partkey"], &key, &[])?;
        let columns = ["l_suppkey", "l_quantity", "l_extendedprice", "l_discount"];
        if self.design.is_whole() {
            let lines = self.tables.get(TpchTable::LineItem.name())?;
            steps = steps.look_up(lines, &key, &columns, &["l_linenumber"])?;
        } else {
            for column in columns {
                let lines = self.of(TpchTable::LineItem, column)?;
                steps = steps.look_up(lines, &key, &[column], &[])?;
            }
        }
        steps
            .look_up(orders, &["l_orderkey"], &["o_orderdate"], &key)?
            .look_up(
                part_suppliers,
                &["p_partkey", "l_suppkey"],
                &["ps_supplycost"],
                &["p_partkey"],
            )?
            .look_up(suppliers, &["l_suppkey"], &["s_nationkey"], &["l_suppkey"])
    }

    /// By the index of the lines by part and supplier.
    fn covering_steps(self) -> Result<Steps<'t>, BenchError> {
        let orders = self.of(TpchTable::Orders, "o_orderdate")?;
        let part_suppliers = self.of(TpchTable::PartSupp, "ps_supplycost")?;
        let suppliers = self.of(TpchTable::Supplier, "s_nationkey")?;
        let key = ["p_partkey", "ps_suppkey"];
        Steps::from("p_partkey")
            .look_up(
                part_suppliers,
                &["p_partkey"],
                &["ps_suppkey", "ps_supplycost"],
                &[],
            )?
            .look_up(suppliers, &["ps_suppkey"], &["s_nationkey"], &[])?
            .look_up(
                self.tables.get(COVERING)?,
                &key,
                &["l_orderkey", "l_quantity", "l_extendedprice", "l_discount"],
                &key,
            )?
            .look_up(orders, &["l_orderkey"], &["o_orderdate"], &["l_orderkey"])
    }

    /// Calls with the rows of a table, a vector at once.
    fn scan(
        self,
        rows: Range<u64>,
        mut each: impl FnMut(Range<u64>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let size = Size::new(self.size).rows() as u64;
        let mut start = rows.start;
        while start < rows.end {
            self.limit.check()?;
            let end = rows.end.min(start + size);
            each(start..end)?;
            start = end;
        }
        Ok(())
    }

    fn hash(self) -> Result<(Profits, usize), Stop> {
        let sides = Sides::build(self)?;
        let lines = self.tables.get(TpchTable::LineItem.name())?;
        let part = [lines.column("l_partkey")?];
        let names = [
            "l_partkey",
            "l_suppkey",
            "l_orderkey",
            "l_quantity",
            "l_extendedprice",
            "l_discount",
        ];
        let mut columns = [0; 6];
        for (column, name) in columns.iter_mut().zip(names) {
            *column = lines.column(name)?;
        }
        self.divided(lines, |rows| {
            let mut profits = Profits::default();
            self.scan(rows, |rows| {
                let mut parts = [Vec::with_capacity((rows.end - rows.start) as usize)];
                let stored = &lines.stored;
                stored.numbers(SomeRows::Range(rows.clone()), &part, &mut parts)?;
                let [parts] = &parts;
                let wanted = rows.zip(parts).filter(|(_, key)| sides.parts.contains(key));
                let wanted: Vec<u64> = wanted.map(|(row, _)| row).collect();
                if wanted.is_empty() {
                    return Ok(());
                }
                let mut read: [Vec<i64>; 6] = Default::default();
                stored.numbers(SomeRows::Ascending(&wanted), &columns, &mut read)?;
                Ok(sides.join(read, &mut profits)?)
            })?;
            Ok((profits, Size::new(self.size).rows()))
        })
    }
}

/// The hash tables.
#[derive(Default)]
struct Sides {
    parts: HashSet<i64, BuildHasherDefault<NumberHasher>>,
    /// By part and supplier, for those parts.
    costs: NumberMap<(i64, i64), i64>,
    /// By supplier.
    nations: NumberMap<i64, i64>,
    /// By order.
    dates: NumberMap<i64, i64>,
}

impl Sides {
    fn build(run: Run<'_>) -> Result<Self, Stop> {
        let mut sides = Self::default();
        let parts = run.tables.get(TpchTable::Part.name())?;
        run.scan(0..parts.stored.rows(), |rows| {
            sides.parts.extend(run.parts(parts, rows)?);
            Ok(())
        })?;
        let part_suppliers = run.tables.get(TpchTable::PartSupp.name())?;
        let cost = part_suppliers.column("ps_supplycost")?;
        run.scan(0..part_suppliers.stored.rows(), |rows| {
            let mut read: [Vec<i64>; 3] = Default::default();
            let stored = &part_suppliers.stored;
            stored.numbers(SomeRows::Range(rows), &[0, 1, cost], &mut read)?;
            let [parts, suppliers, costs] = &read;
            let keys = parts.iter().copied().zip(suppliers.iter().copied());
            let rows = keys.zip(costs.iter().copied());
            let is_wanted = |((part, _), _): &((i64, i64), i64)| sides.parts.contains(part);
            sides.costs.extend(rows.filter(is_wanted));
            Ok(())
        })?;
        let pairs = [
            (TpchTable::Supplier, "s_nationkey", &mut sides.nations),
            (TpchTable::Orders, "o_orderdate", &mut sides.dates),
        ];
        for (table, column, map) in pairs {
            let table = run.tables.get(table.name())?;
            let column = table.column(column)?;
            map.reserve(table.stored.rows() as usize);
            run.scan(0..table.stored.rows(), |rows| {
                let mut read: [Vec<i64>; 2] = Default::default();
                let stored = &table.stored;
                stored.numbers(SomeRows::Range(rows), &[0, column], &mut read)?;
                let [keys, values] = read;
                map.extend(keys.into_iter().zip(values));
                Ok(())
            })?;
        }
        Ok(sides)
    }

    /// Lines by part, supplier, order, quantity, price and discount.
    fn join(&self, lines: [Vec<i64>; 6], profits: &mut Profits) -> Result<(), BenchError> {
        let [parts, suppliers, orders, quantities, prices, discounts] = lines;
        let mut joined: [Vec<i64>; PROFIT_SLOTS.len()] = Default::default();
        for (row, part) in parts.into_iter().enumerate() {
            let key = (part, suppliers[row]);
            let (Some(cost), Some(nation), Some(date)) = (
                self.costs.get(&key),
                self.nations.get(&suppliers[row]),
                self.dates.get(&orders[row]),
            ) else {
                continue;
            };
            let values = [
                *nation,
                *date,
                quantities[row],
                prices[row],
                discounts[row],
                *cost,
            ];
            for (column, value) in joined.iter_mut().zip(values) {
                column.push(value);
            }
        }
        profits.add(joined.each_ref().map(Vec::as_slice))
    }
}

fn texts(array: &dyn Array) -> Result<&StringViewArray, BenchError> {
    let texts = array.as_any().downcast_ref();
    texts.ok_or_else(|| not_text(array))
}
