//! The SQL filters that a SPARQL query can take over.
//!
//! A filter on texts is taken over whole where the source compares the same texts. A filter on
//! numbers becomes a bound that may let too many rows through, as a column of `numeric(10,2)`
//! rounds its values; SQL applies the filter again.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use orrery_storage::table::ColumnType;

use super::{GraphCondition, GraphTest};

/// Values that a condition lists, at most.
pub(super) const VALUES_MAX: usize = 10_000;

/// What decimals of SPARQL are rounded to; bounds travel as such, for all kinds of numbers compare
/// with them as they are.
const DECIMAL_STEP: f64 = 1e-18;
/// Bounds beyond are not sent: their decimals have more digits than are worth reading.
const BOUND_MAX: f64 = 1e36;

/// A column as conditions see it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) column_type: ColumnType,
    pub(super) is_resource: bool,
}

/// Conditions out of a filter, and whether they are all that it says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) conditions: Vec<GraphCondition>,
    pub(super) is_whole: bool,
}

/// What a query can take of a filter over these columns.
pub(super) fn taken(filter: &Expr, columns: &[Seen]) -> Option<Taken> {
    match filter {
        Expr::IsNotNull(operand) => {
            let seen = column(operand, columns)?;
            Some(seen.whole(GraphTest::IsBound))
        }
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => {
            let values = list.iter().map(literal).collect::<Option<Vec<_>>>()?;
            column(expr, columns)?.one_of(&values)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => {
                let (left, right) = (taken(left, columns), taken(right, columns));
                let is_whole = [&left, &right]
                    .iter()
                    .all(|taken| taken.as_ref().is_some_and(|taken| taken.is_whole));
                let both = left.into_iter().chain(right);
                let conditions: Vec<_> = both.flat_map(|taken| taken.conditions).collect();
                (!conditions.is_empty()).then_some(Taken {
                    conditions,
                    is_whole,
                })
            }
            _ => match (column(left, columns), literal(right)) {
                (Some(seen), Some(value)) => seen.compared(*op, &value),
                _ => column(right, columns)?.compared(op.swap()?, &literal(left)?),
            },
        },
        _ => None,
    }
}

fn column<'s>(expr: &Expr, columns: &'s [Seen]) -> Option<&'s Seen> {
    match expr {
        Expr::Column(column) => columns.iter().find(|seen| seen.name == column.name),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) if !value.is_null() => Some(value.clone()),
        _ => None,
    }
}

impl Seen {
    fn whole(&self, test: GraphTest) -> Taken {
        Taken {
            conditions: vec![self.condition(test)],
            is_whole: true,
        }
    }

    fn condition(&self, test: GraphTest) -> GraphCondition {
        GraphCondition {
            variable: self.name.clone(),
            test,
        }
    }

    fn compared(&self, op: Operator, value: &ScalarValue) -> Option<Taken> {
        if op == Operator::Eq {
            return self.one_of(std::slice::from_ref(value));
        }
        let bounds = match op {
            Operator::Lt | Operator::LtEq => vec![GraphTest::AtMost(self.bound(value, 1.0)?)],
            Operator::Gt | Operator::GtEq => {
                let bound = self.bound(value, -1.0)?;
                vec![match self.column_type {
                    ColumnType::Double => GraphTest::AtLeastOrNan(bound),
                    _ => GraphTest::AtLeast(bound),
                }]
            }
            _ => return None,
        };
        Some(self.part(bounds))
    }

    fn part(&self, tests: Vec<GraphTest>) -> Taken {
        let conditions = tests.into_iter().map(|test| self.condition(test));
        Taken {
            conditions: conditions.collect(),
            is_whole: false,
        }
    }

    /// That the column is one of these values.
    pub(super) fn one_of(&self, values: &[ScalarValue]) -> Option<Taken> {
        if values.is_empty() || values.len() > VALUES_MAX {
            return None;
        }
        if !is_any_text(self.column_type) {
            let [value] = values else { return None };
            let (low, high) = (self.bound(value, -1.0)?, self.bound(value, 1.0)?);
            return Some(self.part(vec![GraphTest::AtLeast(low), GraphTest::AtMost(high)]));
        }
        let texts = values
            .iter()
            .map(|value| Some(value.try_as_str()??.to_owned()));
        let texts = texts.collect::<Option<Vec<String>>>()?;
        // Blank nodes have no text in SPARQL.
        if texts.iter().any(|text| text.starts_with("_:")) {
            return None;
        }
        Some(self.whole(match self.is_resource {
            true => GraphTest::IriIn(texts),
            false => GraphTest::TextIn(texts),
        }))
    }

    /// A number that is surely beyond a value in a direction, for values of this column are
    /// rounded.
    fn bound(&self, value: &ScalarValue, direction: f64) -> Option<String> {
        let step = match self.column_type {
            ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt => 1.0,
            ColumnType::Decimal { scale, .. } => 0.1_f64.powi(i32::from(scale)),
            ColumnType::Real => return None,
            ColumnType::Double => 0.0,
            _ => return None,
        };
        let value = number(value)?;
        // What a double cannot tell apart is let through, and what an `xsd:decimal` cannot, on both
        // sides.
        let slack = value.abs() * f64::EPSILON * 4.0 + 4.0 * DECIMAL_STEP;
        let beyond = value + direction * (step + slack);
        (beyond.abs() < BOUND_MAX).then(|| format!("{beyond}"))
    }
}

fn is_any_text(column_type: ColumnType) -> bool {
    matches!(
        column_type,
        ColumnType::Text {
            length_max: None,
            is_padded: false
        }
    )
}

fn number(value: &ScalarValue) -> Option<f64> {
    match value.cast_to(&datafusion::arrow::datatypes::DataType::Float64) {
        Ok(ScalarValue::Float64(number)) if value.data_type().is_numeric() => {
            number.filter(|number| number.is_finite())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    fn columns() -> Vec<Seen> {
        let text = ColumnType::Text {
            length_max: None,
            is_padded: false,
        };
        let decimal = ColumnType::Decimal {
            precision: 10,
            scale: 2,
        };
        let of = |name: &str, column_type, is_resource| Seen {
            name: name.to_owned(),
            column_type,
            is_resource,
        };
        vec![
            of("s", text, true),
            of("o", text, false),
            of("price", decimal, false),
        ]
    }

    fn shown(filter: &Expr) -> Option<(String, bool)> {
        let taken = taken(filter, &columns())?;
        let conditions: Vec<String> = taken.conditions.iter().map(ToString::to_string).collect();
        Some((conditions.join(" and "), taken.is_whole))
    }

    #[test]
    fn texts_are_taken_whole_and_numbers_as_wider_bounds() {
        let of = |text: &str, is_whole| Some((text.to_owned(), is_whole));
        assert_eq!(
            shown(&col("s").eq(lit("http://e/a"))),
            of("?s IN (\"http://e/a\")", true)
        );
        assert_eq!(shown(&lit("x").eq(col("o"))), of("?o IN (\"x\")", true));
        assert_eq!(
            shown(&col("s").is_not_null().and(col("o").like(lit("x%")))),
            of("BOUND(?s)", false)
        );
        let list = col("o").in_list(vec![lit("x"), lit("y")], false);
        assert_eq!(shown(&list), of("?o IN (\"x\", \"y\")", true));
        let below = taken(&col("price").lt(lit(100.0)), &columns()).unwrap();
        let GraphTest::AtMost(bound) = &below.conditions[0].test else {
            panic!("{below:?}");
        };
        let bound: f64 = bound.parse().unwrap();
        assert!(
            !below.is_whole && bound > 100.0 && bound < 100.02,
            "{bound}"
        );
        for other in [
            col("s").eq(lit("_:b1")),
            col("s").not_eq(lit("x")),
            col("o").in_list(vec![lit("x")], true),
            col("price").lt(lit("100")),
            col("s").eq(col("o")),
        ] {
            assert_eq!(shown(&other), None, "{other}");
        }
    }
}
