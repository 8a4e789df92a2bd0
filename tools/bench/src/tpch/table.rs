//! The eight tables: names, definitions, rows.

use arrow::array::RecordBatchReader;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

use super::Scale;

/// A table of the schema, in an order in which each stands after those that it refers to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum TpchTable {
    /// Five regions.
    Region,
    /// 25 nations.
    Nation,
    /// 10,000 suppliers at scale 1.
    Supplier,
    /// 200,000 parts.
    Part,
    /// Each part's four suppliers.
    PartSupp,
    /// 150,000 customers.
    Customer,
    /// Ten orders a customer, of two thirds of them.
    Orders,
    /// One to seven lines an order.
    LineItem,
}

impl TpchTable {
    /// All of them, in the order in which they can be made and filled.
    pub const ALL: [Self; 8] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Part,
        Self::PartSupp,
        Self::Customer,
        Self::Orders,
        Self::LineItem,
    ];

    /// As SQL calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Part => "part",
            Self::PartSupp => "partsupp",
            Self::Customer => "customer",
            Self::Orders => "orders",
            Self::LineItem => "lineitem",
        }
    }

    /// The CREATE TABLE statement, with PostgreSQL's types, the primary key and the foreign ones.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Region => include_str!("../../queries/tpch/tables/region.sql"),
            Self::Nation => include_str!("../../queries/tpch/tables/nation.sql"),
            Self::Supplier => include_str!("../../queries/tpch/tables/supplier.sql"),
            Self::Part => include_str!("../../queries/tpch/tables/part.sql"),
            Self::PartSupp => include_str!("../../queries/tpch/tables/partsupp.sql"),
            Self::Customer => include_str!("../../queries/tpch/tables/customer.sql"),
            Self::Orders => include_str!("../../queries/tpch/tables/orders.sql"),
            Self::LineItem => include_str!("../../queries/tpch/tables/lineitem.sql"),
        }
    }

    /// Rows that it has at this scale; of the lines only the orders are known before they are made.
    pub fn rows(self, scale: Scale) -> Option<u64> {
        Some(match self {
            Self::Region => 5,
            Self::Nation => 25,
            Self::Supplier => scale.rows(10_000),
            Self::Part => scale.rows(200_000),
            Self::PartSupp => 4 * scale.rows(200_000),
            Self::Customer => scale.rows(150_000),
            Self::Orders => scale.rows(1_500_000),
            Self::LineItem => return None,
        })
    }

    /// Its rows in batches of `batch_rows`, in the order of the primary key.
    pub fn batches(self, scale: Scale, batch_rows: usize) -> Box<dyn RecordBatchReader + Send> {
        self.part_of_batches(scale, batch_rows, 1, 1)
    }

    /// Part `part` of `parts` of the rows, counted from one: the parts make the table one after the
    /// other. Tables that do not grow with the scale are in the first part whole.
    pub fn part_of_batches(
        self,
        scale: Scale,
        batch_rows: usize,
        part: i32,
        parts: i32,
    ) -> Box<dyn RecordBatchReader + Send> {
        let factor = scale.factor();
        macro_rules! batches {
            ($arrow:ident, $generator:ident) => {
                Box::new(
                    $arrow::new($generator::new(factor, part, parts)).with_batch_size(batch_rows),
                )
            };
        }
        match self {
            Self::Region | Self::Nation if part > 1 => {
                let schema = self.batches(scale, batch_rows).schema();
                Box::new(arrow::array::RecordBatchIterator::new(
                    std::iter::empty(),
                    schema,
                ))
            }
            Self::Region => batches!(RegionArrow, RegionGenerator),
            Self::Nation => batches!(NationArrow, NationGenerator),
            Self::Supplier => batches!(SupplierArrow, SupplierGenerator),
            Self::Part => batches!(PartArrow, PartGenerator),
            Self::PartSupp => batches!(PartSuppArrow, PartSuppGenerator),
            Self::Customer => batches!(CustomerArrow, CustomerGenerator),
            Self::Orders => batches!(OrderArrow, OrderGenerator),
            Self::LineItem => batches!(LineItemArrow, LineItemGenerator),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::compute::concat_batches;
    use arrow::util::display::array_value_to_string;

    use super::*;

    fn whole(table: TpchTable, scale: Scale, parts: i32) -> arrow::array::RecordBatch {
        let schema = table.batches(scale, 1).schema();
        let batches: Vec<_> = (1..=parts)
            .flat_map(|part| table.part_of_batches(scale, 1_000, part, parts))
            .map(Result::unwrap)
            .collect();
        concat_batches(&schema, &batches).unwrap()
    }

    fn row(batch: &arrow::array::RecordBatch, row: usize) -> Vec<String> {
        let columns = batch.columns().iter();
        columns
            .map(|column| array_value_to_string(column, row).unwrap())
            .collect()
    }

    #[test]
    fn the_tables_have_the_rows_that_the_specification_counts() {
        let scale = Scale::new(0.01).unwrap();
        for table in TpchTable::ALL {
            let rows = whole(table, scale, 1).num_rows() as u64;
            // Of the lines, the number is in the specification for whole scales only; this one is
            // the TPC's generator's.
            assert_eq!(rows, table.rows(scale).unwrap_or(60_175), "{table:?}");
        }
    }

    #[test]
    fn known_rows_of_the_official_generator_are_there() {
        let scale = Scale::new(0.01).unwrap();
        assert_eq!(
            row(&whole(TpchTable::LineItem, scale, 1), 0),
            [
                "1",
                "1552",
                "93",
                "1",
                "17.00",
                "24710.35",
                "0.04",
                "0.02",
                "N",
                "O",
                "1996-03-13",
                "1996-02-12",
                "1996-03-22",
                "DELIVER IN PERSON",
                "TRUCK",
                "egular courts above the",
            ]
        );
        assert_eq!(
            row(&whole(TpchTable::Supplier, scale, 1), 0),
            [
                "1",
                "Supplier#000000001",
                " N kD4on9OM Ipw3,gf0JBoQDd7tgrzrddZ",
                "17",
                "27-918-335-1736",
                "5755.94",
                "each slyly above the careful",
            ]
        );
        assert_eq!(
            row(&whole(TpchTable::Nation, scale, 1), 24)[..3],
            ["24", "UNITED STATES", "1"]
        );
    }

    #[test]
    fn parts_make_the_whole() {
        let scale = Scale::new(0.003).unwrap();
        for table in TpchTable::ALL {
            assert_eq!(whole(table, scale, 1), whole(table, scale, 7), "{table:?}");
        }
    }

    #[test]
    fn the_definitions_name_the_columns_in_order() {
        let scale = Scale::new(0.01).unwrap();
        for table in TpchTable::ALL {
            let definition = table.definition();
            assert!(definition.starts_with(&format!("create table {} (", table.name())));
            let columns: Vec<&str> = definition
                .lines()
                .filter_map(|line| line.strip_prefix("    "))
                .filter_map(|line| line.split(' ').next())
                .filter(|word| word.contains('_'))
                .collect();
            let schema = table.batches(scale, 1).schema();
            let fields: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            assert_eq!(columns, fields, "{table:?}");
        }
    }
}
