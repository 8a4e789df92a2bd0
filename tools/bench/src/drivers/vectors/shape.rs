//! The five physical designs and their tables.
//!
//! ```text
//! hash plan              the six tables of Q9, whole, by their primary keys
//! index                  these, and an index: l_partkey | l_orderkey, l_linenumber
//! covering index         these, and an index: l_partkey, l_suppkey | l_orderkey, l_linenumber | l_quantity, l_extendedprice, l_discount
//! one column per table   ten tables: the primary key of its table and one of the columns that Q9 reads, and the first index
//! the same, covering     the same ten tables, and the second index
//! ```

use arrow::datatypes::{DataType, Schema};
use serde::{Serialize, Serializer};

use crate::tpch::{Scale, TpchTable};

/// How the data is laid out, and which plan that is for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Design {
    /// Tables by their primary keys alone: Q9 scans the lines and asks hash tables.
    Hash,
    /// Also an index of the lines by part: from the parts, everything by look-ups.
    Index,
    /// Instead an index of the lines by part and supplier that has all that Q9 reads.
    Covering,
    /// A table for each column, with the key; and the index by part.
    OneColumn,
    /// A table for each column, and the index that has all that Q9 reads.
    OneColumnCovering,
}

impl Design {
    /// All of them, in the order of the study.
    pub const ALL: [Self; 5] = [
        Self::Hash,
        Self::Index,
        Self::Covering,
        Self::OneColumn,
        Self::OneColumnCovering,
    ];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash plan",
            Self::Index => "index",
            Self::Covering => "covering index",
            Self::OneColumn => "one column per table",
            Self::OneColumnCovering => "one column per table, covering index",
        }
    }

    /// Whether its tables have all of their columns.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Hash | Self::Index | Self::Covering)
    }

    /// The tables and indexes that it takes place for.
    pub(super) fn shapes(self) -> impl Iterator<Item = &'static str> {
        let tables = match self.is_whole() {
            true => WHOLE.map(TpchTable::name).to_vec(),
            false => ONE_COLUMN.map(|(_, column)| column).to_vec(),
        };
        let index = match self {
            Self::Hash => None,
            Self::Index | Self::OneColumn => Some(BY_PART),
            Self::Covering | Self::OneColumnCovering => Some(COVERING),
        };
        tables.into_iter().chain(index)
    }

    /// Where a column of a table is read.
    pub(super) fn table_of(self, table: TpchTable, column: &'static str) -> &'static str {
        match self.is_whole() {
            true => table.name(),
            false => column,
        }
    }
}

impl Serialize for Design {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The index of the lines by part.
pub(super) const BY_PART: &str = "index by part";
/// The index of the lines by part and supplier, with what Q9 reads.
pub(super) const COVERING: &str = "covering index";

const WHOLE: [TpchTable; 6] = [
    TpchTable::Nation,
    TpchTable::Supplier,
    TpchTable::Part,
    TpchTable::PartSupp,
    TpchTable::Orders,
    TpchTable::LineItem,
];

/// The columns that Q9 reads beside the keys.
const ONE_COLUMN: [(TpchTable, &str); 10] = [
    (TpchTable::Nation, "n_name"),
    (TpchTable::Supplier, "s_nationkey"),
    (TpchTable::Part, "p_name"),
    (TpchTable::PartSupp, "ps_supplycost"),
    (TpchTable::Orders, "o_orderdate"),
    (TpchTable::LineItem, "l_partkey"),
    (TpchTable::LineItem, "l_suppkey"),
    (TpchTable::LineItem, "l_quantity"),
    (TpchTable::LineItem, "l_extendedprice"),
    (TpchTable::LineItem, "l_discount"),
];

/// Some columns of a table, sorted by the first of them: a table, an index, or a table of one
/// column.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// Where its rows come from.
    pub(super) table: TpchTable,
    pub(super) columns: Vec<(String, DataType)>,
    /// So many of these are the key, which no two rows have.
    pub(super) key_columns: usize,
    /// Whether the rows are made in the order of the key.
    pub(super) is_made_sorted: bool,
}

impl Shape {
    /// All that some design needs.
    pub(super) fn all(scale: Scale) -> Vec<Self> {
        let whole = WHOLE.map(|table| {
            let schema = table.batches(scale, 1).schema();
            let key = primary_key(table);
            let others = schema.fields().iter().map(|field| field.name().as_str());
            let others = others.filter(|name| !key.contains(name));
            let columns: Vec<&str> = key.iter().copied().chain(others).collect();
            Self::new(table.name(), table, &schema, &columns, key.len())
        });
        let one_column = ONE_COLUMN.map(|(table, column)| {
            let schema = table.batches(scale, 1).schema();
            let key = primary_key(table);
            let columns = [key, &[column]].concat();
            Self::new(column, table, &schema, &columns, key.len())
        });
        let lines = TpchTable::LineItem;
        let schema = lines.batches(scale, 1).schema();
        let key = primary_key(lines);
        let by_part = [&["l_partkey"], key].concat();
        let covering = [
            &["l_partkey", "l_suppkey"],
            key,
            &["l_quantity", "l_extendedprice", "l_discount"],
        ]
        .concat();
        let indexes = [(BY_PART, by_part, 3), (COVERING, covering, 4)];
        let indexes = indexes.map(|(name, columns, key_columns)| Self {
            is_made_sorted: false,
            ..Self::new(name, lines, &schema, &columns, key_columns)
        });
        whole.into_iter().chain(one_column).chain(indexes).collect()
    }

    fn new(
        name: &'static str,
        table: TpchTable,
        schema: &Schema,
        columns: &[&str],
        key_columns: usize,
    ) -> Self {
        let columns = columns.iter().filter_map(|name| {
            let field = schema.field_with_name(name).ok()?;
            Some((field.name().clone(), field.data_type().clone()))
        });
        Self {
            name,
            table,
            columns: columns.collect(),
            key_columns,
            // A part's suppliers are made in an order of their own.
            is_made_sorted: table != TpchTable::PartSupp,
        }
    }

    /// The place of a column.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(of, _)| of == name)
    }

    /// The types of its first columns.
    pub(super) fn types(&self, columns: usize) -> impl Iterator<Item = &DataType> {
        self.columns[..columns].iter().map(|(_, of)| of)
    }
}

fn primary_key(table: TpchTable) -> &'static [&'static str] {
    match table {
        TpchTable::Region => &["r_regionkey"],
        TpchTable::Nation => &["n_nationkey"],
        TpchTable::Supplier => &["s_suppkey"],
        TpchTable::Part => &["p_partkey"],
        TpchTable::PartSupp => &["ps_partkey", "ps_suppkey"],
        TpchTable::Customer => &["c_custkey"],
        TpchTable::Orders => &["o_orderkey"],
        TpchTable::LineItem => &["l_orderkey", "l_linenumber"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_finds_its_tables_and_every_column_its_place() {
        let shapes = Shape::all(Scale::new(0.01).unwrap());
        let named = |name: &str| shapes.iter().find(|shape| shape.name == name).unwrap();
        for design in Design::ALL {
            assert!(design.shapes().all(|name| !named(name).columns.is_empty()));
        }
        assert_eq!(named("lineitem").columns.len(), 16);
        assert_eq!(named("lineitem").column("l_linenumber"), Some(1));
        assert_eq!(named("l_discount").columns.len(), 3);
        assert_eq!(named(COVERING).columns.len(), 7);
        assert_eq!(named(COVERING).key_columns, 4);
        let table = Design::OneColumn.table_of(TpchTable::Orders, "o_orderdate");
        assert_eq!(named(table).column("o_orderdate"), Some(1));
    }
}
