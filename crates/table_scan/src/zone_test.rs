//! The zone map test: whether any row of a vector can pass a condition.
//!
//! Zones are of the file alone. Rows that changed are looked at one by one, wherever they stand.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr,
};
use orrery_storage::Result;
use orrery_storage::table::{
    ColumnType, ColumnZones, Physical, ProjectionFile, TextDictionary, ZoneKind, zone_lane,
};

use super::compared::{array_of, comparison, is_padded, values_of_list};

/// A longer list of values is only looked at as a range.
const VALUES_MAX: usize = 10_000;

/// Whether a vector can have rows for which a condition is true.
#[derive(Debug)]
pub(super) enum ZoneTest {
    /// Nothing is known.
    Unknown,
    /// It is true for no row at all.
    Nothing,
    /// Of a column, a value from one lane up to another.
    Between(Arc<ColumnZones>, u64, u64),
    /// Of a column, a value of one of these lanes, which ascend.
    Among(Arc<ColumnZones>, Vec<u64>),
    /// Of a column with codes, one of a set.
    Coded(Arc<ColumnZones>, Arc<CodeSet>),
    /// A row that is NULL in a column.
    Null(Arc<ColumnZones>),
    /// A row that is not, in vectors of so many rows but for the last.
    NotNull(Arc<ColumnZones>),
    /// All of them.
    All(Vec<ZoneTest>),
    /// One of them.
    Any(Vec<ZoneTest>),
}

/// The codes of a dictionary whose values make a condition true.
#[derive(Debug)]
pub(super) struct CodeSet {
    /// By code.
    pub(super) passes: Vec<bool>,
    /// Whether NULL does.
    pub(super) null_passes: bool,
    /// By code the number of lesser ones in the set.
    before: Vec<u32>,
}

impl CodeSet {
    pub(super) fn new(passes: Vec<bool>, null_passes: bool) -> Self {
        let mut before = Vec::with_capacity(passes.len() + 1);
        let mut count = 0;
        before.push(0);
        for passes in &passes {
            count += u32::from(*passes);
            before.push(count);
        }
        Self {
            passes,
            null_passes,
            before,
        }
    }

    /// Whether one of the codes from `least` to `greatest` is in it.
    fn has_within(&self, least: u64, greatest: u64) -> bool {
        let at = |code: u64| {
            let code = usize::try_from(code).unwrap_or(usize::MAX);
            self.before.get(code).or(self.before.last()).copied()
        };
        least <= greatest && at(greatest.saturating_add(1)) > at(least)
    }
}

impl ZoneTest {
    /// Whether any row of the vector may pass.
    pub(super) fn may_pass(&self, vector: usize) -> bool {
        match self {
            Self::Unknown => true,
            Self::Nothing => false,
            Self::Between(zones, least, greatest) => {
                zones.least[vector] <= *greatest && zones.greatest[vector] >= *least
            }
            Self::Among(zones, lanes) => {
                let from = lanes.partition_point(|lane| *lane < zones.least[vector]);
                lanes
                    .get(from)
                    .is_some_and(|lane| *lane <= zones.greatest[vector])
            }
            Self::Coded(zones, set) => {
                set.has_within(zones.least[vector], zones.greatest[vector])
                    || set.null_passes && zones.nulls[vector] > 0
            }
            Self::Null(zones) => zones.nulls[vector] > 0,
            Self::NotNull(zones) => zones.least[vector] <= zones.greatest[vector],
            Self::All(tests) => tests.iter().all(|test| test.may_pass(vector)),
            Self::Any(tests) => tests.iter().any(|test| test.may_pass(vector)),
        }
    }
}

/// A file, and where the columns that expressions name are in it.
pub(super) struct Zoned<'a> {
    pub(super) file: &'a ProjectionFile,
    /// By the column's index in expressions: its place in the projection, and its type.
    pub(super) columns: &'a [(usize, ColumnType)],
}

/// What is known of one column.
struct Known {
    zones: Arc<ColumnZones>,
    dictionary: Option<Arc<TextDictionary>>,
    column_type: ColumnType,
}

impl Zoned<'_> {
    /// The test of a condition.
    pub(super) fn test(&self, condition: &Arc<dyn PhysicalExpr>) -> Result<ZoneTest> {
        if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
            return match binary.op() {
                Operator::And => Ok(ZoneTest::All(vec![
                    self.test(binary.left())?,
                    self.test(binary.right())?,
                ])),
                Operator::Or => Ok(ZoneTest::Any(vec![
                    self.test(binary.left())?,
                    self.test(binary.right())?,
                ])),
                _ => match comparison(condition) {
                    Some((column, operator, value)) => self.compare(column, operator, value),
                    None => Ok(ZoneTest::Unknown),
                },
            };
        }
        if let Some(list) = condition.downcast_ref::<InListExpr>() {
            return match values_of_list(list) {
                Some((column, values)) => self.among(column, &values),
                None => Ok(ZoneTest::Unknown),
            };
        }
        let is_null = condition.downcast_ref::<IsNullExpr>().map(IsNullExpr::arg);
        let not_null = condition.downcast_ref::<IsNotNullExpr>();
        let not_null = not_null.map(IsNotNullExpr::arg);
        let column = is_null.or(not_null).and_then(|arg| arg.downcast_ref());
        let column: Option<&Column> = column;
        let Some(known) = column.map(|column| self.known(column)).transpose()? else {
            return Ok(ZoneTest::Unknown);
        };
        Ok(match known {
            Some(known) if is_null.is_some() => ZoneTest::Null(known.zones),
            Some(known) => ZoneTest::NotNull(known.zones),
            None => ZoneTest::Unknown,
        })
    }

    fn known(&self, column: &Column) -> Result<Option<Known>> {
        let Some(&(place, column_type)) = self.columns.get(column.index()) else {
            return Ok(None);
        };
        let Some(zones) = self.file.zones(place)? else {
            return Ok(None);
        };
        let dictionary = match zones.kind {
            ZoneKind::Codes => self.file.dictionary(place)?,
            ZoneKind::Values => None,
        };
        let is_usable = dictionary.is_some() || zones.kind == ZoneKind::Values;
        Ok(is_usable.then_some(Known {
            zones,
            dictionary,
            column_type,
        }))
    }

    fn compare(
        &self,
        column: &Column,
        operator: Operator,
        value: &ScalarValue,
    ) -> Result<ZoneTest> {
        if value.is_null() {
            // Of the others, `IS DISTINCT FROM NULL` is true for all that is not.
            return Ok(match operator.returns_null_on_null() {
                true => ZoneTest::Nothing,
                false => ZoneTest::Unknown,
            });
        }
        let Some(known) = self.known(column)? else {
            return Ok(ZoneTest::Unknown);
        };
        let Some((at, behind)) = known.lanes(value)? else {
            return Ok(ZoneTest::Unknown);
        };
        // `at` is the least lane that is not before the value, `behind` the greatest that is not
        // behind it; where both are one, values of that lane may be the value.
        let (least, greatest) = match operator {
            Operator::Eq if at > behind => return Ok(ZoneTest::Nothing),
            Operator::Eq => (at, behind),
            _ if !known.is_ordered() => return Ok(ZoneTest::Unknown),
            Operator::LtEq => (0, behind),
            Operator::GtEq => (at, u64::MAX),
            Operator::Lt if known.is_exact() => match at.checked_sub(1) {
                Some(before) => (0, before),
                None => return Ok(ZoneTest::Nothing),
            },
            Operator::Gt if known.is_exact() => match behind.checked_add(1) {
                Some(next) => (next, u64::MAX),
                None => return Ok(ZoneTest::Nothing),
            },
            Operator::Lt => (0, behind),
            Operator::Gt => (at, u64::MAX),
            _ => return Ok(ZoneTest::Unknown),
        };
        Ok(ZoneTest::Between(known.zones, least, greatest))
    }

    fn among(&self, column: &Column, values: &[&ScalarValue]) -> Result<ZoneTest> {
        let Some(known) = self.known(column)? else {
            return Ok(ZoneTest::Unknown);
        };
        if values.len() > VALUES_MAX {
            return Ok(ZoneTest::Unknown);
        }
        let mut lanes = Vec::with_capacity(values.len());
        for value in values.iter().filter(|value| !value.is_null()) {
            match known.lanes(value)? {
                Some((at, behind)) if at <= behind => lanes.push(at),
                Some(_) => {}
                None => return Ok(ZoneTest::Unknown),
            }
        }
        lanes.sort_unstable();
        Ok(ZoneTest::Among(known.zones, lanes))
    }
}

impl Known {
    /// The lane of a value, as the least that is not before it and the greatest that is not behind
    /// it. `None` for values of another type.
    fn lanes(&self, value: &ScalarValue) -> Result<Option<(u64, u64)>> {
        if let Some(dictionary) = &self.dictionary {
            let bytes = match value {
                ScalarValue::Utf8(Some(text))
                | ScalarValue::Utf8View(Some(text))
                | ScalarValue::LargeUtf8(Some(text)) => text.as_bytes(),
                ScalarValue::Binary(Some(bytes))
                | ScalarValue::BinaryView(Some(bytes))
                | ScalarValue::LargeBinary(Some(bytes)) => bytes,
                _ => return Ok(None),
            };
            return Ok(match dictionary.find(bytes) {
                Ok(code) => Some((u64::from(code), u64::from(code))),
                // A code of 0 with nothing before it: no lane is less.
                Err(0) => None,
                Err(code) => Some((u64::from(code), u64::from(code) - 1)),
            });
        }
        let Some(array) = array_of(value, self.column_type) else {
            return Ok(None);
        };
        Ok(zone_lane(self.column_type, &array, 0)?.map(|lane| (lane, lane)))
    }

    /// Whether different values have different lanes.
    fn is_exact(&self) -> bool {
        self.dictionary.is_some()
            || self.column_type.physical() == Physical::Lane
                && !matches!(self.column_type, ColumnType::Real | ColumnType::Double)
    }

    /// Whether lanes are in the order in which the engine compares values: it does not pass over
    /// the spaces at the end of a `CHAR(n)`.
    fn is_ordered(&self) -> bool {
        self.dictionary.is_some() || !is_padded(self.column_type)
    }
}
