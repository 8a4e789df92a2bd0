//! A compiled expression as DataFusion's `PhysicalExpr`.
//!
//! The variables it reads are its children, columns of the input: an operator that moves columns
//! exchanges the children and the expression goes on reading what it read.

use std::fmt::{self, Debug, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, RecordBatch};
use arrow::compute::concat;
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
    /// How many rows are evaluated at a time: all of a batch, or fewer once that was too much.
    pub(crate) rows_at_once: AtomicUsize,
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

    /// The results for all rows of the input.
    ///
    /// # Errors
    /// Where fewer rows may do, one that says so
    /// ([`is_of_many_rows`](crate::error::Error::is_of_many_rows)).
    fn evaluate_at_once(&self, input: &Input) -> crate::error::Result<ColumnarValue> {
        let rows = input.rows;
        let context = &self.program.context;
        let column = self.program.root.evaluate(input, context)?;
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
            (ResultKind::Number(_), _) => internal_err!("{self} gave no plain numbers")?,
            (ResultKind::SortKey, column) => sort_keys(column, rows, context)?,
        })
    }

    /// The results for rows that are too many at a time. Texts of the next batch may be shorter: it
    /// begins with twice as many.
    #[cold]
    fn evaluate_in_parts(&self, input: &Input) -> Result<ArrayRef> {
        let known = self.program.rows_at_once.load(Ordering::Relaxed);
        let mut at_once = known.min(input.rows.div_ceil(2)).max(1);
        let mut parts: Vec<ArrayRef> = Vec::new();
        let mut counted = self.program.context.count_all();
        let mut from = 0;
        while from < input.rows {
            let rows = at_once.min(input.rows - from);
            match self.evaluate_at_once(&input.slice(from, rows)) {
                Ok(part) => {
                    let part = part.into_array(rows)?;
                    // Keys to sort by are texts, and they stand twice where the parts are put
                    // together.
                    counted.add_bytes(2 * part.get_buffer_memory_size())?;
                    parts.push(part);
                    from += rows;
                }
                Err(error) if error.is_of_many_rows() && rows > 1 => at_once = rows.div_ceil(2),
                Err(error) => return Err(error.into()),
            }
        }
        let next = at_once.saturating_mul(2);
        self.program.rows_at_once.store(next, Ordering::Relaxed);
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(concat(&parts)?)
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
        let input = self.input(batch)?;
        if input.rows <= self.program.rows_at_once.load(Ordering::Relaxed) {
            match self.evaluate_at_once(&input) {
                Err(error) if error.is_of_many_rows() && input.rows > 1 => {}
                other => return Ok(other?),
            }
        }
        Ok(ColumnarValue::Array(self.evaluate_in_parts(&input)?))
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

fn sort_keys(
    column: Column,
    rows: usize,
    context: &ExpressionContext,
) -> crate::error::Result<ColumnarValue> {
    let mut keys = BinaryBuilder::with_capacity(rows, rows * 16);
    if let Column::Ids(ids) = &column {
        sort_keys_of_ids(ids, context, |_, key| keys.append_value(key))?;
        return Ok(ColumnarValue::Array(Arc::new(keys.finish())));
    }
    let mut key = Vec::new();
    let mut counted = context.count_all();
    let mut append = |value: Option<&Value>| -> crate::error::Result<()> {
        key.clear();
        write_sort_key(value, &mut key);
        counted.add_bytes(key.len())?;
        keys.append_value(&key);
        Ok(())
    };
    match column {
        Column::Floats(numbers) => numbers
            .iter()
            .try_for_each(|number| append(number.map(|it| Value::Float(it.into())).as_ref())),
        Column::Doubles(numbers) => numbers
            .iter()
            .try_for_each(|number| append(number.map(|it| Value::Double(it.into())).as_ref())),
        other => {
            let operand = other.into_operand(Reading::Value, context)?;
            (0..rows).try_for_each(|row| append(operand.get(row)))
        }
    }?;
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
        // Expressions of one plan are few; to hash their trees took longer than to compare those
        // that are alike.
        self.variables.len().hash(state);
    }
}
