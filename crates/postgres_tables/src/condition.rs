//! Pushdown of conditions to the foreign server, where they mean the same there.
//!
//! Same means: for every row true here if and only if true there, NULL and false alike at the top.
//! Three-valued logic is the same on both sides. Numbers compare exactly, floats with one NaN that
//! is the greatest, times as instants. Texts are equal byte by byte (unless a collation takes
//! others for equal, then under `"C"`), and ordered by their bytes, hence `COLLATE "C"`. Of
//! `char(n)` the blanks at the end are none here, and in `::text` none there.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};

use crate::columns::{ForeignColumn, SourceKind};
use crate::literal::{
    bytes, bytes_of, date, decimal, float, integer, quoted_name, quoted_text, text_of, timestamp,
};

/// A condition is sent as far as it is not longer.
const CONDITION_BYTES_MAX: usize = 256 << 10;
/// Conditions may be nested so deep.
const DEPTH_MAX: usize = 64;

/// The condition for the source; none where it might mean something else there.
pub(crate) fn condition(expr: &Expr, columns: &[ForeignColumn]) -> Option<String> {
    let text = Conditions { columns }.of(expr, 0)?;
    (text.len() <= CONDITION_BYTES_MAX).then_some(text)
}

struct Conditions<'t> {
    columns: &'t [ForeignColumn],
}

impl Conditions<'_> {
    fn of(&self, expr: &Expr, depth: usize) -> Option<String> {
        if depth > DEPTH_MAX {
            return None;
        }
        let of = |expr: &Expr| self.of(expr, depth + 1);
        Some(match expr {
            Expr::Column(_) => {
                let column = self.column(expr)?;
                (column.source.kind == SourceKind::Bool).then(|| quoted_name(&column.name))?
            }
            Expr::Literal(ScalarValue::Boolean(Some(value)), _) => {
                if *value { "TRUE" } else { "FALSE" }.to_owned()
            }
            Expr::Not(expr) => format!("(NOT {})", of(expr)?),
            Expr::IsNull(expr) => format!("({} IS NULL)", quoted_name(&self.column(expr)?.name)),
            Expr::IsNotNull(expr) => {
                format!("({} IS NOT NULL)", quoted_name(&self.column(expr)?.name))
            }
            Expr::IsTrue(expr) => format!("({} IS TRUE)", of(expr)?),
            Expr::IsFalse(expr) => format!("({} IS FALSE)", of(expr)?),
            Expr::IsUnknown(expr) => format!("({} IS UNKNOWN)", of(expr)?),
            Expr::IsNotTrue(expr) => format!("({} IS NOT TRUE)", of(expr)?),
            Expr::IsNotFalse(expr) => format!("({} IS NOT FALSE)", of(expr)?),
            Expr::IsNotUnknown(expr) => format!("({} IS NOT UNKNOWN)", of(expr)?),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::And => format!("({} AND {})", of(left)?, of(right)?),
                Operator::Or => format!("({} OR {})", of(left)?, of(right)?),
                op => self.comparison(left, *op, right)?,
            },
            Expr::Between(between) => self.between(between)?,
            Expr::InList(list) => self.in_list(list)?,
            Expr::Like(like) => self.like(like)?,
            _ => return None,
        })
    }

    fn column(&self, expr: &Expr) -> Option<&ForeignColumn> {
        let Expr::Column(column) = expr else {
            return None;
        };
        self.columns.iter().find(|it| it.name == column.name)
    }

    fn comparison(&self, left: &Expr, op: Operator, right: &Expr) -> Option<String> {
        match (left, right) {
            (Expr::Column(_), Expr::Literal(value, _)) => compared(self.column(left)?, op, value),
            (Expr::Literal(value, _), Expr::Column(_)) => {
                compared(self.column(right)?, op.swap()?, value)
            }
            (Expr::Column(_), Expr::Column(_)) => {
                let (left, right) = (self.column(left)?, self.column(right)?);
                if left.source.kind != right.source.kind {
                    return None;
                }
                let op = operator(op)?;
                Some(format!("({} {op} {})", ordered(left), ordered(right)))
            }
            _ => None,
        }
    }

    fn between(&self, between: &Between) -> Option<String> {
        let column = self.column(&between.expr)?;
        let (Expr::Literal(low, _), Expr::Literal(high, _)) = (&*between.low, &*between.high)
        else {
            return None;
        };
        let low = compared(column, Operator::GtEq, low)?;
        let high = compared(column, Operator::LtEq, high)?;
        let not = if between.negated { "NOT " } else { "" };
        Some(format!("({not}({low} AND {high}))"))
    }

    fn in_list(&self, list: &InList) -> Option<String> {
        let column = self.column(&list.expr)?;
        let values = list.list.iter().map(|value| match value {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        });
        let values: Vec<&ScalarValue> = values.collect::<Option<_>>()?;
        let text = one_of(column, &values)?;
        Some(match list.negated {
            true => format!("(NOT {text})"),
            false => text,
        })
    }

    fn like(&self, like: &Like) -> Option<String> {
        let column = self.column(&like.expr)?;
        let Expr::Literal(pattern, _) = &*like.pattern else {
            return None;
        };
        let pattern = text_of(pattern)?;
        // What a backslash escapes, above all at the end, is not the same everywhere; nor are
        // capitals.
        let is_plain = like.escape_char.is_none() && !like.case_insensitive;
        if !is_plain || pattern.contains('\\') || !is_text(column.source.kind) {
            return None;
        }
        let not = if like.negated { "NOT " } else { "" };
        let operand = equal_operand(column);
        Some(format!("({operand} {not}LIKE {})", quoted_text(pattern)))
    }
}

/// That a column is one of some values.
pub(crate) fn one_of(column: &ForeignColumn, values: &[&ScalarValue]) -> Option<String> {
    let sides = values.iter().map(|value| equal_to(column, value));
    let sides: Vec<(String, String)> = sides.collect::<Option<_>>()?;
    let (operand, _) = sides.first()?;
    // All of a list are compared in one way.
    if sides.iter().any(|(other, _)| other != operand) {
        let each = sides
            .iter()
            .map(|(operand, value)| format!("{operand} = {value}"));
        return Some(format!("({})", each.collect::<Vec<_>>().join(" OR ")));
    }
    let values: Vec<&str> = sides.iter().map(|(_, value)| value.as_str()).collect();
    Some(format!("({operand} IN ({}))", values.join(", ")))
}

/// That a column stands to a value as an operator says.
pub(crate) fn compared(
    column: &ForeignColumn,
    op: Operator,
    value: &ScalarValue,
) -> Option<String> {
    let word = operator(op)?;
    let (operand, value) = match op {
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
            if is_text(column.source.kind) =>
        {
            (ordered(column), quoted_text(text_of(value)?))
        }
        _ => equal_to(column, value)?,
    };
    Some(format!("({operand} {word} {value})"))
}

fn operator(op: Operator) -> Option<&'static str> {
    Some(match op {
        Operator::Eq => "=",
        Operator::NotEq => "<>",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        Operator::IsDistinctFrom => "IS DISTINCT FROM",
        Operator::IsNotDistinctFrom => "IS NOT DISTINCT FROM",
        _ => return None,
    })
}

fn is_text(kind: SourceKind) -> bool {
    matches!(
        kind,
        SourceKind::Text
            | SourceKind::Varchar
            | SourceKind::Bpchar
            | SourceKind::Uuid
            | SourceKind::Other
    )
}

/// A column as it is ordered here.
fn ordered(column: &ForeignColumn) -> String {
    let name = quoted_name(&column.name);
    match column.source.kind {
        SourceKind::Text | SourceKind::Varchar => format!("{name} COLLATE \"C\""),
        SourceKind::Bpchar | SourceKind::Uuid | SourceKind::Other => {
            format!("{name}::text COLLATE \"C\"")
        }
        _ => name,
    }
}

/// A column of texts where it is compared for equality, or with a pattern: without a collation, so
/// that the source's indices serve.
fn equal_operand(column: &ForeignColumn) -> String {
    let name = quoted_name(&column.name);
    match column.source.kind {
        SourceKind::Text | SourceKind::Varchar if column.source.is_deterministic => name,
        SourceKind::Text
        | SourceKind::Varchar
        | SourceKind::Bpchar
        | SourceKind::Uuid
        | SourceKind::Other => ordered(column),
        _ => name,
    }
}

/// A column and a value such that both are equal there if and only if they are here; in the same
/// order, too, but texts.
fn equal_to(column: &ForeignColumn, value: &ScalarValue) -> Option<(String, String)> {
    let name = quoted_name(&column.name);
    let value = match column.source.kind {
        SourceKind::Bool => match value {
            ScalarValue::Boolean(Some(value)) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
            _ => return None,
        },
        SourceKind::Int2 | SourceKind::Int4 | SourceKind::Int8 => match value {
            ScalarValue::Int16(Some(value)) => integer(i64::from(*value)),
            ScalarValue::Int32(Some(value)) => integer(i64::from(*value)),
            ScalarValue::Int64(Some(value)) => integer(*value),
            _ => return None,
        },
        SourceKind::Numeric => match value {
            ScalarValue::Decimal128(Some(value), _, scale) => decimal(*value, *scale)?,
            _ => return None,
        },
        SourceKind::Float4 => match value {
            ScalarValue::Float32(Some(value)) => {
                float(f64::from(*value), &format!("{value:e}"), "float4")
            }
            _ => return None,
        },
        SourceKind::Float8 => match value {
            ScalarValue::Float64(Some(value)) => float(*value, &format!("{value:e}"), "float8"),
            _ => return None,
        },
        SourceKind::Date => match value {
            ScalarValue::Date32(Some(days)) => date(*days)?,
            _ => return None,
        },
        SourceKind::Timestamp => match value {
            ScalarValue::TimestampMicrosecond(Some(value), None) => timestamp(*value, false)?,
            _ => return None,
        },
        SourceKind::TimestampTz => match value {
            ScalarValue::TimestampMicrosecond(Some(value), Some(_)) => timestamp(*value, true)?,
            _ => return None,
        },
        SourceKind::Bytea => bytes(bytes_of(value)?),
        SourceKind::Bpchar => {
            let text = text_of(value)?;
            match text.ends_with(' ') || !column.source.is_deterministic {
                true => return Some((ordered(column), quoted_text(text))),
                false => format!("{}::bpchar", quoted_text(text)),
            }
        }
        SourceKind::Uuid => {
            let text = text_of(value)?;
            match is_uuid(text) {
                true => format!("{}::uuid", quoted_text(text)),
                false => return Some((ordered(column), quoted_text(text))),
            }
        }
        SourceKind::Text | SourceKind::Varchar | SourceKind::Other => {
            return Some((equal_operand(column), quoted_text(text_of(value)?)));
        }
    };
    Some((name, value))
}

/// Whether a text is a UUID as the source writes them.
fn is_uuid(text: &str) -> bool {
    let is_right = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;
    use crate::columns::SourceType;

    fn columns() -> Vec<ForeignColumn> {
        let column = |name: &str, word: &str| {
            let source = SourceType::parse(word).unwrap();
            ForeignColumn {
                name: name.to_owned(),
                column_type: source.kind.column_type(-1).unwrap(),
                source,
                is_nullable: true,
            }
        };
        vec![
            column("i", "int4"),
            column("j", "int4"),
            column("t", "text"),
            column("n", "text~"),
            column("c", "bpchar"),
            column("u", "uuid"),
            column("o", "other"),
            column("b", "bool"),
            column("d", "numeric"),
            column("f", "float8"),
        ]
    }

    fn sent(expr: Expr) -> Option<String> {
        condition(&expr, &columns())
    }

    #[test]
    fn comparisons_are_written_as_they_mean_the_same() {
        let cases = [
            (col("i").eq(lit(5)), "(\"i\" = 5)"),
            (lit(-5).lt(col("i")), "(\"i\" > (-5))"),
            (col("i").not_eq(col("j")), "(\"i\" <> \"j\")"),
            (col("t").eq(lit("O'x")), "(\"t\" = 'O''x')"),
            (col("t").lt(lit("b")), "(\"t\" COLLATE \"C\" < 'b')"),
            (col("n").eq(lit("x")), "(\"n\" COLLATE \"C\" = 'x')"),
            (col("c").eq(lit("x")), "(\"c\" = 'x'::bpchar)"),
            (col("c").eq(lit("x ")), "(\"c\"::text COLLATE \"C\" = 'x ')"),
            (col("u").eq(lit("X")), "(\"u\"::text COLLATE \"C\" = 'X')"),
            (
                col("u").eq(lit("00000000-0000-0000-0000-00000000000a")),
                "(\"u\" = '00000000-0000-0000-0000-00000000000a'::uuid)",
            ),
            (col("o").eq(lit("x")), "(\"o\"::text COLLATE \"C\" = 'x')"),
            (col("f").gt(lit(1.5)), "(\"f\" > '1.5e0'::float8)"),
            (
                col("d").eq(lit(ScalarValue::Decimal128(Some(-150), 38, 2))),
                "(\"d\" = '-1.50'::numeric)",
            ),
            (col("b").and(!col("b")), "(\"b\" AND (NOT \"b\"))"),
            (
                col("i").is_null().or(col("t").is_not_null()),
                "((\"i\" IS NULL) OR (\"t\" IS NOT NULL))",
            ),
            (
                col("i").between(lit(1), lit(3)),
                "((\"i\" >= 1) AND (\"i\" <= 3))",
            ),
            (
                col("i").in_list(vec![lit(1), lit(2)], true),
                "(NOT (\"i\" IN (1, 2)))",
            ),
            (
                col("c").in_list(vec![lit("x"), lit("y ")], false),
                "(\"c\" = 'x'::bpchar OR \"c\"::text COLLATE \"C\" = 'y ')",
            ),
            (col("t").like(lit("a%_'")), "(\"t\" LIKE 'a%_''')"),
        ];
        for (expr, expected) in cases {
            let text = sent(expr.clone());
            let between = matches!(expr, Expr::Between(_));
            let expected = match between {
                true => format!("({expected})"),
                false => expected.to_owned(),
            };
            assert_eq!(text.as_deref(), Some(expected.as_str()), "{expr}");
        }
    }

    #[test]
    fn what_may_mean_something_else_is_not_sent() {
        let cases = [
            (col("i") + lit(1)).eq(lit(5)),
            col("i").eq(lit(5_i64)).and((col("i") * lit(2)).gt(lit(1))),
            col("i").eq(lit(1.5)),
            col("t").eq(lit("a\0b")),
            col("t").like(lit("a\\%")),
            col("t").ilike(lit("a%")),
            col("i").eq(col("t")),
            col("t").is_null().and(col("missing").is_null()),
            col("i").eq(lit(ScalarValue::Int32(None))),
        ];
        for expr in cases {
            assert_eq!(sent(expr.clone()), None, "{expr}");
        }
        let mut nested = Expr::Column("b".into());
        for _ in 0..100 {
            nested = Expr::Not(Box::new(nested));
        }
        assert_eq!(sent(nested), None);
    }
}
