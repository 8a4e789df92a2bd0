//! Prepared statements: planned once, run with different values.
//!
//! ```text
//! query    text -> logical plan, cached while no table has changed; values in the place of $1, $2 -> physical plan, which runs once
//! change   text -> statement; values as literals in the place of $1, $2 -> as any other statement
//! ```
//!
//! A logical plan holds the state of the tables that it was made over. So after a commit that
//! changed tables the query is planned anew, without anybody noticing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, AssignmentTarget, CastKind, DataType as SqlType, Expr, SetExpr,
    Statement as Sql, TableFactor, TableObject, TimezoneInfo, Value, VisitorMut,
};
use orrery_storage::table::{TableDefinition, Tables};
use parking_lot::Mutex;

use crate::catalog::lookup::table_named;
use crate::functions::bytes::cast_value;
use crate::parse::identifiers::simple;
use crate::parse::plan_size::bytes_of_plan;
use crate::parse::statement::Statement;
use crate::parse::visit::{visit_expressions, visit_mut};
use crate::plan::ready::ReadyQuery;
use crate::plan::walk::{Walk, WalkPlan};
use crate::semantics::column_names::{shown_columns, shown_name};
use crate::values::place::place_of;
use crate::values::texts::ValueTexts;
use crate::{Error, Result, SqlState};

/// Parameters that a statement may have, as PostgreSQL's protocol has it.
const PARAMETERS_MAX: usize = 65_535;

/// Bytes that a statement's tree takes for each of its text: words, signs and names are nodes of
/// their own.
const TREE_BYTES: usize = 48;

/// What a statement takes however short it is: the nodes of its tree have room for all that a
/// statement may have, and its plan for what it is looked up by. Measured of short ones
/// (`tests/memory/prepared.rs`), which took 2,200 (`COMMIT`) to 10,100 bytes (`SELECT 1`) beyond
/// what their texts and plans count.
const STATEMENT_BYTES: usize = 10 << 10;

/// A column that a client is told of.
const COLUMN_BYTES: usize = 200;

/// A statement with parameters.
#[derive(Debug)]
pub struct Prepared {
    /// What its tree takes, counted while it is there; of one that another process understood once
    /// that is said.
    memory: Option<MemoryReservation>,
    pub(crate) statement: Statement,
    parameters: Vec<Option<DataType>>,
    columns: Option<SchemaRef>,
    /// Types that whoever prepared it has told.
    told: Vec<Option<DataType>>,
    kept: Mutex<Option<Kept>>,
}

/// What is known of a query.
#[derive(Debug)]
struct Kept {
    /// What the plan takes.
    _memory: MemoryReservation,
    /// The tables that the plan is over.
    tables: Arc<Tables>,
    plan: LogicalPlan,
    ready: Readiness,
}

/// Whether a query can be run without being planned.
#[derive(Debug, Clone)]
pub(crate) enum Readiness {
    /// It was not run yet: many are run once alone.
    NotRun,
    /// It was, but not looked at.
    Unknown,
    No,
    Yes(Arc<ReadyQuery>),
}

impl Prepared {
    /// A query, with its plan over some tables.
    pub(crate) fn query(
        statement: Statement,
        tables: &Arc<Tables>,
        plan: LogicalPlan,
        told: &[Option<DataType>],
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Self> {
        let memory = held_for(&statement, pool)?;
        let plan = with_types(plan, told, &statement.text)?;
        let types = plan
            .get_parameter_types()
            .map_err(|error| Error::of_engine(&error, &statement.text))?;
        let mut parameters = vec![None; parameters_of(&statement)?];
        for (name, data_type) in types {
            if let Some(place) = place_of(&name).and_then(|place| parameters.get_mut(place)) {
                *place = data_type;
            }
        }
        let columns = shown_columns(plan.schema().inner());
        hold_columns(&memory, Some(&columns))?;
        Ok(Self {
            columns: Some(columns),
            told: told.to_vec(),
            kept: Mutex::new(Kept::new(tables, plan, &memory)),
            memory: Some(memory),
            statement,
            parameters,
        })
    }

    /// Anything else.
    pub(crate) fn other(
        statement: Statement,
        tables: &Tables,
        columns: Option<SchemaRef>,
        told: &[Option<DataType>],
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Self> {
        let memory = held_for(&statement, pool)?;
        hold_columns(&memory, columns.as_ref())?;
        let mut parameters = vec![None; parameters_of(&statement)?];
        for (name, data_type) in assigned_types(&statement, tables) {
            if let Some(place) = place_of(&name).and_then(|place| parameters.get_mut(place)) {
                *place = Some(data_type);
            }
        }
        // What is told and does not fit is assigned, which rounds where a cast cuts off.
        for (place, told) in parameters.iter_mut().zip(told) {
            if let Some(DataType::Decimal128(..)) = told {
                // Whatever digits it has.
                *place = None;
            } else if told.is_some() {
                place.clone_from(told);
            }
        }
        Ok(Self {
            columns,
            told: told.to_vec(),
            kept: Mutex::new(None),
            memory: Some(memory),
            statement,
            parameters,
        })
    }

    /// One that was understood by another process.
    pub(crate) fn elsewhere(
        statement: Statement,
        parameters: Vec<Option<DataType>>,
        columns: Option<SchemaRef>,
        told: &[Option<DataType>],
    ) -> Self {
        Self {
            memory: None,
            columns,
            told: told.to_vec(),
            kept: Mutex::new(None),
            statement,
            parameters,
        }
    }

    /// The same, counted here.
    pub(crate) fn held_in(mut self, pool: &Arc<dyn MemoryPool>) -> Result<Self> {
        let memory = held_for(&self.statement, pool)?;
        hold_columns(&memory, self.columns.as_ref())?;
        self.memory = Some(memory);
        Ok(self)
    }

    /// The types of its parameters, as far as they are known: a text is right for others.
    pub fn parameters(&self) -> &[Option<DataType>] {
        &self.parameters
    }

    /// The columns of its rows, if it has any.
    pub fn columns(&self) -> Option<&SchemaRef> {
        self.columns.as_ref()
    }

    /// The statement, with its parameters.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The text that it is of.
    pub fn text(&self) -> &str {
        &self.statement.text
    }

    /// Fails where a new plan gives other columns than whoever prepared it was told.
    pub(crate) fn require_columns(&self, plan: &LogicalPlan) -> Result<()> {
        let fields = plan.schema().fields();
        let same = self.columns.as_ref().is_none_or(|told| {
            let told = told.fields();
            let mut pairs = told.iter().zip(fields.iter());
            told.len() == fields.len()
                && pairs.all(|(told, field)| {
                    told.name() == shown_name(field.name()) && told.data_type() == field.data_type()
                })
        });
        match same {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::FeatureNotSupported,
                "cached plan must not change result type",
            )),
        }
    }

    /// A new plan, with the types that were told.
    pub(crate) fn told(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        with_types(plan, &self.told, &self.statement.text)
    }

    /// Types of its parameters that were told.
    pub(crate) fn told_types(&self) -> &[Option<DataType>] {
        &self.told
    }

    /// The plan over these tables, if that is kept.
    pub(crate) fn plan_over(&self, tables: &Arc<Tables>) -> Option<LogicalPlan> {
        let kept = self.kept.lock();
        let kept = kept.as_ref()?;
        Arc::ptr_eq(&kept.tables, tables).then(|| kept.plan.clone())
    }

    /// Whether it can be run over these tables without being planned. Notes that it is run.
    pub(crate) fn readiness(&self, tables: &Arc<Tables>) -> Readiness {
        let mut kept = self.kept.lock();
        let Some(kept) = kept.as_mut() else {
            return Readiness::No;
        };
        match &kept.ready {
            Readiness::NotRun => return std::mem::replace(&mut kept.ready, Readiness::Unknown),
            Readiness::Yes(ready) if !ready.is_over(tables) => {
                kept.ready = match ready.over(tables) {
                    Some(ready) => Readiness::Yes(Arc::new(ready)),
                    None => Readiness::Unknown,
                };
            }
            Readiness::Yes(_) | Readiness::Unknown | Readiness::No => {}
        }
        kept.ready.clone()
    }

    /// Keeps what it needs to be run without being planned, if that is little.
    pub(crate) fn keep_ready(&self, ready: Option<&Arc<ReadyQuery>>) {
        if let Some(kept) = self.kept.lock().as_mut() {
            kept.ready = ready.map_or(Readiness::No, |ready| Readiness::Yes(Arc::clone(ready)));
        }
    }

    /// Keeps another plan.
    pub(crate) fn keep(&self, tables: &Arc<Tables>, plan: LogicalPlan) {
        let mut kept = self.kept.lock();
        let ready = match kept.take() {
            Some(kept) if kept.tables.has_same_definitions(tables) => kept.ready,
            Some(_) => Readiness::Unknown,
            None => Readiness::NotRun,
        };
        // Without memory for it, it is planned anew each time.
        let memory = self.memory.as_ref();
        let new = memory.and_then(|memory| Kept::new(tables, plan, memory));
        *kept = new.map(|kept| Kept { ready, ..kept });
    }

    /// Keeps none: it reads more than tables, and has to be made anew each time.
    pub(crate) fn forget_plan(&self) {
        *self.kept.lock() = None;
    }

    /// The values in the types of the parameters; fails where they are not as many.
    pub(crate) fn typed(&self, values: &[ScalarValue]) -> Result<Vec<ScalarValue>> {
        if values.len() != self.parameters.len() {
            return Err(Error::new(
                SqlState::UndefinedParameter,
                format!(
                    "{} values are given for {} parameters",
                    values.len(),
                    self.parameters.len()
                ),
            ));
        }
        let typed = values.iter().zip(&self.parameters);
        let typed = typed.map(|(value, data_type)| match data_type {
            // What is compared or assigned has the digits that it has: a cast would cut them off.
            Some(DataType::Decimal128(..)) if is_decimal(value) => Ok(value.clone()),
            Some(data_type) => cast_value(value, data_type).map_err(|error| Error::of_run(&error)),
            None => Ok(value.clone()),
        });
        typed.collect()
    }

    /// The statement with values in the place of its parameters.
    pub(crate) fn with_values(&self, values: &[ScalarValue]) -> Result<Statement> {
        let literals = self
            .typed(values)?
            .iter()
            .map(literal)
            .collect::<Result<_>>()?;
        let mut statement = self.statement.clone();
        if let Parsed::Statement(parsed) = &mut statement.parsed {
            let _: ControlFlow<()> = visit_mut(parsed, &mut Placing(literals));
        }
        Ok(statement)
    }
}

impl Kept {
    /// None where there is no memory for it.
    fn new(tables: &Arc<Tables>, plan: LogicalPlan, memory: &MemoryReservation) -> Option<Self> {
        let of_plan = memory.new_empty();
        // Once as it was planned, once as it is optimized.
        of_plan.try_grow(2 * bytes_of_plan(&plan)).ok()?;
        Some(Self {
            _memory: of_plan,
            tables: Arc::clone(tables),
            plan,
            ready: Readiness::NotRun,
        })
    }
}

/// Holds the memory of a statement's text and tree; fails where there is not so much.
fn held_for(statement: &Statement, pool: &Arc<dyn MemoryPool>) -> Result<MemoryReservation> {
    let memory = MemoryConsumer::new("a prepared statement").register(pool);
    let grown = memory.try_grow(STATEMENT_BYTES + statement.text.len() * TREE_BYTES);
    grown.map_err(|error| Error::of_run(&error))?;
    Ok(memory)
}

/// Holds the memory of what a client is told of a statement's rows.
fn hold_columns(memory: &MemoryReservation, columns: Option<&SchemaRef>) -> Result<()> {
    let count = columns.map_or(0, |columns| columns.fields().len());
    let grown = memory.try_grow(count * COLUMN_BYTES);
    grown.map_err(|error| Error::of_run(&error))
}

/// A plan whose parameters have these types, as far as they are told.
pub(crate) fn with_types(
    plan: LogicalPlan,
    told: &[Option<DataType>],
    text: &str,
) -> Result<LogicalPlan> {
    if told.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let mut typed = |expr: PlannedExpr| -> Result<_, DataFusionError> {
        let PlannedExpr::Placeholder(placeholder) = expr else {
            return Ok(Transformed::no(expr));
        };
        let place = place_of(&placeholder.id);
        let told = place.and_then(|place| told.get(place)).cloned().flatten();
        let Some(told) = told else {
            return Ok(Transformed::no(PlannedExpr::Placeholder(placeholder)));
        };
        let field = Arc::new(Field::new(&placeholder.id, told, true));
        let placeholder = Placeholder::new_with_field(placeholder.id, Some(field));
        Ok(Transformed::yes(PlannedExpr::Placeholder(placeholder)))
    };
    let typed = plan.transform_up_with_subqueries_by(&mut |plan| {
        let plan = plan.map_expressions_by(&mut |expr| expr.transform_up_by(&mut typed))?;
        // Also where nothing changed in it: its inputs may have other types now.
        plan.map_data(LogicalPlan::recompute_schema)
    });
    let typed = typed.map_err(|error| Error::of_engine(&error, text))?;
    Ok(typed.data)
}

fn is_decimal(value: &ScalarValue) -> bool {
    matches!(
        value,
        ScalarValue::Decimal32(..)
            | ScalarValue::Decimal64(..)
            | ScalarValue::Decimal128(..)
            | ScalarValue::Decimal256(..)
    )
}

/// How many parameters a statement has: the greatest number among them.
pub(crate) fn parameters_of(statement: &Statement) -> Result<usize> {
    let Parsed::Statement(parsed) = &statement.parsed else {
        return Ok(0);
    };
    let mut greatest = 0;
    let wrong = visit_expressions(&**parsed, |expr| {
        match placeholder(expr).map(|name| (name, place_of(name))) {
            None => ControlFlow::Continue(()),
            Some((_, Some(place))) if place < PARAMETERS_MAX => {
                greatest = greatest.max(place + 1);
                ControlFlow::Continue(())
            }
            Some((name, _)) => ControlFlow::Break(name.to_owned()),
        }
    });
    match wrong {
        ControlFlow::Continue(()) => Ok(greatest),
        ControlFlow::Break(name) => Err(Error::new(
            SqlState::UndefinedParameter,
            format!("there is no parameter {name}"),
        )),
    }
}

fn placeholder(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Puts literals in the place of parameters.
struct Placing(Vec<Expr>);

impl VisitorMut for Placing {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let place = placeholder(expr).and_then(place_of);
        if let Some(literal) = place.and_then(|place| self.0.get(place)) {
            *expr = literal.clone();
        }
        ControlFlow::Continue(())
    }
}

/// The types of parameters that are assigned to columns as they are.
fn assigned_types(statement: &Statement, tables: &Tables) -> BTreeMap<String, DataType> {
    let mut types = BTreeMap::new();
    let Parsed::Statement(parsed) = &statement.parsed else {
        return types;
    };
    let mut note = |definition: &TableDefinition, column: &str, value: &Expr| {
        if let (Some(column), Some(name)) = (definition.column_named(column), placeholder(value)) {
            types.insert(name.to_owned(), column.column_type.arrow());
        }
    };
    match &**parsed {
        Sql::Insert(insert) => {
            let TableObject::TableName(name) = &insert.table else {
                return types;
            };
            let Ok(table) = table_named(tables, name) else {
                return types;
            };
            let definition = table.definition();
            let given = insert.columns.iter().filter_map(|name| simple(name).ok());
            let mut given: Vec<String> = given.collect();
            if given.is_empty() {
                given.extend(definition.columns.iter().map(|it| it.name.clone()));
            }
            if let Some(SetExpr::Values(values)) = insert.source.as_ref().map(|it| &*it.body) {
                for row in &values.rows {
                    for (value, column) in row.iter().zip(&given) {
                        note(definition, column, value);
                    }
                }
            }
        }
        Sql::Update(update) => {
            let TableFactor::Table { name, .. } = &update.table.relation else {
                return types;
            };
            let Ok(table) = table_named(tables, name) else {
                return types;
            };
            for assignment in &update.assignments {
                if let AssignmentTarget::ColumnName(column) = &assignment.target
                    && let Ok(column) = simple(column)
                {
                    note(table.definition(), &column, &assignment.value);
                }
            }
        }
        _ => {}
    }
    types
}

/// A value as a text of SQL has it.
fn literal(value: &ScalarValue) -> Result<Expr> {
    if value.is_null() {
        return Ok(Expr::value(Value::Null));
    }
    if let ScalarValue::List(list) = value {
        return list_literal(&list.value(0));
    }
    let array = value.to_array().map_err(|error| Error::of_run(&error))?;
    let mut text = String::new();
    ValueTexts::new(&array)?.write(0, &mut text)?;
    let quoted = |text: String| Expr::value(Value::SingleQuotedString(text));
    let cast = |text: String, to: SqlType| Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(quoted(text)),
        data_type: to,
        array: false,
        format: None,
    };
    Ok(match value.data_type() {
        DataType::Boolean => Expr::value(Value::Boolean(text == "t")),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            cast(text, SqlType::DoublePrecision)
        }
        // As negative ones have a sign before them, they are in brackets.
        data_type if data_type.is_numeric() => {
            let is_negative = text.starts_with('-');
            let number = Expr::value(Value::Number(
                text.trim_start_matches('-').to_owned(),
                false,
            ));
            match is_negative {
                true => Expr::Nested(Box::new(Expr::UnaryOp {
                    op: datafusion::sql::sqlparser::ast::UnaryOperator::Minus,
                    expr: Box::new(number),
                })),
                false => number,
            }
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            cast(text, SqlType::Bytea)
        }
        DataType::Date32 | DataType::Date64 => cast(text, SqlType::Date),
        DataType::Time32(_) | DataType::Time64(_) => {
            cast(text, SqlType::Time(None, TimezoneInfo::None))
        }
        DataType::Timestamp(_, None) => cast(text, SqlType::Timestamp(None, TimezoneInfo::None)),
        DataType::Timestamp(_, Some(_)) => {
            cast(text, SqlType::Timestamp(None, TimezoneInfo::WithTimeZone))
        }
        _ => quoted(text),
    })
}

/// `CAST(ARRAY[1, 2] AS BIGINT[])`: without elements, and where all are NULL, the type is all that
/// tells what they are.
fn list_literal(elements: &ArrayRef) -> Result<Expr> {
    let literals = (0..elements.len()).map(|place| {
        literal(
            &ScalarValue::try_from_array(elements, place).map_err(|error| Error::of_run(&error))?,
        )
    });
    let array = Expr::Array(Array {
        elem: literals.collect::<Result<_>>()?,
        named: true,
    });
    let Some(element) = sql_type(elements.data_type()) else {
        return Ok(array);
    };
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(array),
        data_type: SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None)),
        array: false,
        format: None,
    })
}

/// The name of a type of elements; none of those whose literals say it themselves.
fn sql_type(data_type: &DataType) -> Option<SqlType> {
    Some(match data_type {
        DataType::Boolean => SqlType::Boolean,
        DataType::Int16 => SqlType::SmallInt(None),
        DataType::Int32 => SqlType::Integer(None),
        DataType::Int64 => SqlType::BigInt(None),
        DataType::Float32 => SqlType::Real,
        DataType::Float64 => SqlType::DoublePrecision,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => SqlType::Text,
        DataType::Date32 => SqlType::Date,
        DataType::Timestamp(_, None) => SqlType::Timestamp(None, TimezoneInfo::None),
        DataType::Timestamp(_, Some(_)) => SqlType::Timestamp(None, TimezoneInfo::WithTimeZone),
        _ => return None,
    })
}
