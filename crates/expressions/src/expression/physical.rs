//! A compiled expression as DataFusion's `PhysicalExpr`.
//!
//! The variables it reads are its children, columns of the input: an operator that moves columns
//! exchanges the children and the expression goes on reading what it read.

use std::fmt::{self, Debug, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{AsArray, BinaryBuilder, RecordBatch};
use arrow::datatypes::{DataType, Schema, UInt64Type};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use spargebra::algebra::Expression;

use crate::columns::column::{Column, Reading};
use crate::columns::id_sort_keys::sort_keys_of_ids;
use crate::columns::lexical_numbers::NumberType;
use crate::context::ExpressionContext;
use crate::expression::display::Sparql;
use crate::expression::node::{Input, Node, RowNumbers};
use crate::values::sort_key::write_sort_key;
use crate::values::value::Value;

/// What the expression gives for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResultKind {
    /// Its effective boolean value.
    Filter,
    /// Its term id.
    Value,
    /// Its number, of an expression that always gives this type.
    Number(NumberType),
    /// The bytes that it sorts by.
    SortKey,
}

/// What does not change when the children do.
pub(crate) struct ExpressionProgram {
    pub(crate) expression: Expression,
    pub(crate) root: Node,
    pub(crate) is_volatile: bool,
    pub(crate) context: Arc<ExpressionContext>,
    /// Rows evaluated so far.
    pub(crate) rows_seen: AtomicU64,
}

/// An expression that can be run on record batches.
pub(crate) struct TermPhysicalExpr {
    pub(crate) program: Arc<ExpressionProgram>,
    pub(crate) variables: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) output: ResultKind,
}

impl TermPhysicalExpr {
    fn input(&self, batch: &RecordBatch) -> Result<Input> {
        let rows = batch.num_rows();
        let columns = self
            .variables
            .iter()
            .map(|variable| {
                let array = variable.evaluate(batch)?.into_array(rows)?;
                match array.as_primitive_opt::<UInt64Type>() {
                    Some(ids) => Ok(ids.clone()),
                    None => internal_err!(
                        "{variable} is a column of {}, not of term ids",
                        array.data_type()
                    ),
                }
            })
            .collect::<Result<_>>()?;
        let first_row = if self.program.is_volatile {
            self.program
                .rows_seen
                .fetch_add(rows as u64, Ordering::Relaxed)
        } else {
            0
        };
        Ok(Input {
            columns,
            rows,
            numbers: RowNumbers::From(first_row),
        })
    }
}

impl PhysicalExpr for TermPhysicalExpr {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(match self.output {
            ResultKind::Filter => DataType::Boolean,
            ResultKind::Value => DataType::UInt64,
            ResultKind::Number(NumberType::Float) => DataType::Float32,
            ResultKind::Number(NumberType::Double) => DataType::Float64,
            ResultKind::SortKey => DataType::Binary,
        })
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(self.output != ResultKind::SortKey)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let context = &self.program.context;
        let column = self.program.root.evaluate(&self.input(batch)?, context)?;
        Ok(match (self.output, column) {
            (ResultKind::Filter, Column::Constant(constant)) => {
                ColumnarValue::Scalar(ScalarValue::Boolean(
                    constant.and_then(|constant| constant.value.effective_boolean()),
                ))
            }
            (ResultKind::Filter, column) => {
                ColumnarValue::Array(Arc::new(column.into_booleans(rows, context)?))
            }
            (ResultKind::Value, Column::Constant(constant)) => ColumnarValue::Scalar(
                ScalarValue::UInt64(constant.map(|constant| constant.id.bits())),
            ),
            (ResultKind::Value, column) => {
                ColumnarValue::Array(Arc::new(column.into_ids(rows, context)?))
            }
            (ResultKind::Number(_), Column::Floats(numbers)) => {
                ColumnarValue::Array(Arc::new(numbers))
            }
            (ResultKind::Number(_), Column::Doubles(numbers)) => {
                ColumnarValue::Array(Arc::new(numbers))
            }
            (ResultKind::Number(_), _) => return internal_err!("{self} gave no plain numbers"),
            (ResultKind::SortKey, column) => sort_keys(column, rows, context)?,
        })
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.variables.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if children.len() != self.variables.len() {
            return internal_err!(
                "{self} reads {} columns, not {}",
                self.variables.len(),
                children.len()
            );
        }
        Ok(Arc::new(Self {
            program: Arc::clone(&self.program),
            variables: children,
            output: self.output,
        }))
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }

    fn is_volatile_node(&self) -> bool {
        self.program.is_volatile
    }
}

fn sort_keys(column: Column, rows: usize, context: &ExpressionContext) -> Result<ColumnarValue> {
    let mut keys = BinaryBuilder::with_capacity(rows, rows * 16);
    if let Column::Ids(ids) = &column {
        sort_keys_of_ids(ids, context, |_, key| keys.append_value(key))?;
        return Ok(ColumnarValue::Array(Arc::new(keys.finish())));
    }
    let mut key = Vec::new();
    let mut append = |value: Option<&Value>| {
        key.clear();
        write_sort_key(value, &mut key);
        keys.append_value(&key);
    };
    match column {
        Column::Floats(numbers) => numbers
            .iter()
            .for_each(|number| append(number.map(|it| Value::Float(it.into())).as_ref())),
        Column::Doubles(numbers) => numbers
            .iter()
            .for_each(|number| append(number.map(|it| Value::Double(it.into())).as_ref())),
        other => {
            let operand = other.into_operand(Reading::Value, context)?;
            (0..rows).for_each(|row| append(operand.get(row)));
        }
    }
    Ok(ColumnarValue::Array(Arc::new(keys.finish())))
}

impl Display for TermPhysicalExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&Sparql(&self.program.expression), f)
    }
}

impl Debug for TermPhysicalExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.output)
    }
}

impl PartialEq for TermPhysicalExpr {
    /// Two runs of `RAND()` are two expressions; all others are what they read and say.
    fn eq(&self, other: &Self) -> bool {
        self.output == other.output
            && self.variables == other.variables
            && (Arc::ptr_eq(&self.program, &other.program)
                || (!self.program.is_volatile
                    && self.program.expression == other.program.expression))
    }
}

impl Eq for TermPhysicalExpr {}

impl Hash for TermPhysicalExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.output.hash(state);
        // Expressions of one plan are few; to hash their trees took longer than to compare those that are alike.
        self.variables.len().hash(state);
    }
}
