//! PostgreSQL's functions about session and catalog.
//!
//! Clients call them for a few rows at a time, so each is evaluated row by row.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int64Array, StructArray, new_empty_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

use super::columns::SCHEMAS;
use super::definitions::{name as quoted, qualified};
use super::numbers::{format_type, type_named};
use super::relations::Seen;
use crate::facts::SessionFacts;
use crate::settings::Scope;
use crate::{Error, Result, SqlState};

type Body = dyn Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync;

/// A function of one row.
struct Function {
    name: &'static str,
    signature: Signature,
    returns: DataType,
    body: Arc<Body>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

// Two of one name are the same if they know the same.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.body, &other.body)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(
        &self,
        arguments: ScalarFunctionArgs,
    ) -> Result<ColumnarValue, DataFusionError> {
        let value = |row: usize| {
            let values = arguments.args.iter().map(|argument| match argument {
                ColumnarValue::Scalar(value) => Ok(value.clone()),
                ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row),
            });
            let values: Vec<ScalarValue> = values.collect::<Result<_, _>>()?;
            Ok::<_, DataFusionError>((self.body)(&values)?)
        };
        let is_constant = arguments
            .args
            .iter()
            .all(|it| matches!(it, ColumnarValue::Scalar(_)));
        if is_constant {
            return Ok(ColumnarValue::Scalar(value(0)?));
        }
        let array: ArrayRef = match arguments.number_rows {
            0 => new_empty_array(&self.returns),
            rows => {
                ScalarValue::iter_to_array((0..rows).map(value).collect::<Result<Vec<_>, _>>()?)?
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

fn function(
    name: &'static str,
    returns: DataType,
    body: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
) -> ScalarUDF {
    function_of(name, Volatility::Stable, returns, body)
}

/// One whose value may be another the next time, so that no plan keeps it.
fn changing(
    name: &'static str,
    returns: DataType,
    body: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
) -> ScalarUDF {
    function_of(name, Volatility::Volatile, returns, body)
}

fn function_of(
    name: &'static str,
    volatility: Volatility,
    returns: DataType,
    body: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
) -> ScalarUDF {
    let any = TypeSignature::OneOf(vec![TypeSignature::Nullary, TypeSignature::VariadicAny]);
    ScalarUDF::new_from_impl(Function {
        name,
        signature: Signature::new(any, volatility),
        returns,
        body: Arc::new(body),
    })
}

fn text(value: impl Into<Option<String>>) -> ScalarValue {
    ScalarValue::Utf8(value.into())
}

fn same(name: &'static str, value: impl Into<Option<String>>) -> ScalarUDF {
    let value = text(value);
    function(name, DataType::Utf8, move |_| Ok(value.clone()))
}

fn always(name: &'static str, value: bool) -> ScalarUDF {
    function(name, DataType::Boolean, move |_| {
        Ok(ScalarValue::from(value))
    })
}

fn number(name: &'static str, value: i64) -> ScalarUDF {
    function(name, DataType::Int64, move |_| Ok(ScalarValue::from(value)))
}

/// An argument that is a text.
fn text_of(values: &[ScalarValue], place: usize) -> Option<String> {
    let value = values.get(place)?;
    match value.cast_to(&DataType::Utf8) {
        Ok(ScalarValue::Utf8(text)) => text,
        _ => None,
    }
}

/// An argument that is a number, also as a text.
fn number_of(values: &[ScalarValue], place: usize) -> Option<i64> {
    match values.get(place)?.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(number)) => number,
        _ => None,
    }
}

fn texts() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
}

fn integers() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)))
}

/// The elements of a list of numbers, if the first argument is one.
fn elements_of(values: &[ScalarValue]) -> Option<ArrayRef> {
    match values.first() {
        Some(ScalarValue::List(list)) if list.is_valid(0) => Some(list.value(0)),
        _ => None,
    }
}

fn length_of(values: &[ScalarValue]) -> i64 {
    elements_of(values).map_or(0, |elements| elements.len() as i64)
}

fn pairs() -> Fields {
    Fields::from(vec![
        Field::new("x", DataType::Int64, true),
        Field::new("n", DataType::Int64, true),
    ])
}

fn expanded() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(
        DataType::Struct(pairs()),
        true,
    )))
}

/// `information_schema._pg_expandarray`: each element with its place, as a list that is unnested.
fn expand(values: &[ScalarValue]) -> Result<ScalarValue> {
    let made = || -> Result<_, DataFusionError> {
        let elements = match elements_of(values) {
            Some(elements) => cast(&elements, &DataType::Int64)?,
            None => new_empty_array(&DataType::Int64),
        };
        let places = Int64Array::from_iter_values(1..=elements.len() as i64);
        let pairs = StructArray::try_new(pairs(), vec![elements, Arc::new(places)], None)?;
        let list = SingleRowListArrayBuilder::new(Arc::new(pairs)).build_list_scalar();
        Ok(list)
    };
    made().map_err(|error| Error::of_run(&error))
}

/// A value as JSON.
fn json(value: &ScalarValue) -> String {
    let written = text_of(std::slice::from_ref(value), 0);
    match (written, value.data_type()) {
        (None, _) => "null".to_owned(),
        (Some(written), of) if of.is_numeric() || of == DataType::Boolean => written,
        (Some(written), _) => {
            let mut json = String::from("\"");
            for c in written.chars() {
                match c {
                    '"' | '\\' => json.extend(['\\', c]),
                    c if c.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(c))),
                    c => json.push(c),
                }
            }
            json.push('"');
            json
        }
    }
}

/// Whether there is a function of a name here.
pub(super) fn is_known(name: &str) -> bool {
    name.starts_with("pg_")
        || name.starts_with("has_")
        || name.starts_with("reg")
        || name.ends_with("_description")
        || matches!(
            name,
            "version"
                | "current_schema"
                | "current_schemas"
                | "current_user"
                | "session_user"
                | "current_role"
                | "user"
                | "current_database"
                | "current_catalog"
                | "current_setting"
                | "set_config"
                | "inet_server_addr"
                | "inet_client_addr"
                | "quote_ident"
                | "format_type"
                | "to_regclass"
                | "to_regtype"
                | "generate_subscripts"
                | "_pg_expandarray"
                | "json_build_object"
        )
}

/// What every session knows.
pub(crate) fn of_session(facts: &SessionFacts) -> Vec<ScalarUDF> {
    let user = || Some(facts.user.clone());
    let (known, changed) = (Arc::clone(&facts.settings), Arc::clone(&facts.settings));
    let standing = Arc::clone(&facts.settings);
    let version = format!(
        "PostgreSQL {} (Orrery {})",
        crate::settings::SERVER_VERSION,
        env!("CARGO_PKG_VERSION")
    );
    let schema = Some(crate::names::SCHEMA.to_owned());
    let database = || Some(crate::names::CATALOG.to_owned());
    vec![
        same("version", version),
        same("current_schema", schema),
        same("current_user", user()),
        same("session_user", user()),
        same("current_role", user()),
        same("user", user()),
        same("current_database", database()),
        same("current_catalog", database()),
        same("pg_client_encoding", "UTF8".to_owned()),
        same("pg_encoding_to_char", "UTF8".to_owned()),
        same("inet_server_addr", None),
        same("inet_client_addr", None),
        changing("pg_is_in_recovery", DataType::Boolean, move |_| {
            Ok(ScalarValue::from(standing.lock().is_standby()))
        }),
        number("pg_backend_pid", i64::from(std::process::id())),
        function("current_schemas", texts(), |values| {
            let own = ScalarValue::from(crate::names::SCHEMA);
            let with_implicit = matches!(values.first(), Some(ScalarValue::Boolean(Some(true))));
            let names = match with_implicit {
                true => vec![ScalarValue::from("pg_catalog"), own],
                false => vec![own],
            };
            Ok(ScalarValue::List(ScalarValue::new_list(
                &names,
                &DataType::Utf8,
                true,
            )))
        }),
        function("current_setting", DataType::Utf8, move |values| {
            let name = text_of(values, 0).unwrap_or_default();
            let may_be_missing = matches!(values.get(1), Some(ScalarValue::Boolean(Some(true))));
            match (known.lock().require(&name), may_be_missing) {
                (Ok(value), _) => Ok(text(value)),
                (Err(_), true) => Ok(text(None)),
                (Err(error), false) => Err(error),
            }
        }),
        function("set_config", DataType::Utf8, move |values| {
            let name = text_of(values, 0).unwrap_or_default();
            let value = text_of(values, 1);
            let is_local = matches!(values.get(2), Some(ScalarValue::Boolean(Some(true))));
            let scope = if is_local {
                Scope::Transaction
            } else {
                Scope::Session
            };
            let mut settings = changed.lock();
            settings.set(&name, value.as_deref(), scope)?;
            Ok(text(settings.require(&name)?))
        }),
        function("quote_ident", DataType::Utf8, |values| {
            Ok(text(text_of(values, 0).map(|name| quoted(&name))))
        }),
        function("format_type", DataType::Utf8, |values| {
            let oid = number_of(values, 0);
            let modifier = number_of(values, 1).unwrap_or(-1);
            Ok(text(oid.map(|oid| format_type(oid, modifier))))
        }),
        function("pg_size_pretty", DataType::Utf8, |values| {
            Ok(text(
                number_of(values, 0).map(|bytes| format!("{bytes} bytes")),
            ))
        }),
        // The expression is its text.
        function("pg_get_expr", DataType::Utf8, |values| {
            Ok(text(text_of(values, 0)))
        }),
        same("obj_description", None),
        same("col_description", None),
        same("shobj_description", None),
        same("pg_get_partkeydef", None),
        same("pg_get_serial_sequence", None),
        same("pg_get_function_arguments", None),
        same("pg_get_function_identity_arguments", None),
        same("pg_get_function_result", None),
        same("pg_get_ruledef", None),
        same("pg_get_triggerdef", None),
        same("pg_get_statisticsobjdef_columns", None),
        same("pg_tablespace_location", None),
        always("has_table_privilege", true),
        always("has_column_privilege", true),
        always("has_any_column_privilege", true),
        always("has_schema_privilege", true),
        always("has_database_privilege", true),
        always("has_function_privilege", true),
        always("has_sequence_privilege", true),
        always("has_tablespace_privilege", true),
        always("has_type_privilege", true),
        always("pg_has_role", true),
        always("pg_type_is_visible", true),
        always("pg_function_is_visible", true),
        always("pg_is_other_temp_schema", false),
        always("pg_relation_is_publishable", false),
        always("pg_collation_is_visible", true),
        always("pg_opclass_is_visible", true),
        always("pg_indexam_has_property", true),
        always("pg_index_has_property", false),
        always("pg_index_column_has_property", true),
        always("has_foreign_data_wrapper_privilege", true),
        always("has_language_privilege", true),
        always("has_server_privilege", true),
        same("pg_get_statisticsobjdef", None),
        same("pg_get_function_sqlbody", None),
        same("pg_get_functiondef", None),
        // None is a partition: it has itself alone.
        function("pg_partition_ancestors", DataType::Int64, |values| {
            Ok(ScalarValue::Int64(number_of(values, 0)))
        }),
        number("pg_stat_get_numscans", 0),
        number("pg_my_temp_schema", 0),
        number("pg_relation_size", 0),
        number("pg_table_size", 0),
        number("pg_indexes_size", 0),
        number("pg_total_relation_size", 0),
        number("pg_database_size", 0),
        function("regtype_number", DataType::Int64, |values| {
            match (number_of(values, 0), text_of(values, 0)) {
                (Some(number), _) => Ok(ScalarValue::from(number)),
                (None, None) => Ok(ScalarValue::Int64(None)),
                (None, Some(name)) => match type_named(&name) {
                    Some(number) => Ok(ScalarValue::from(number)),
                    None => Err(Error::new(
                        SqlState::UndefinedObject,
                        format!("type \"{name}\" does not exist"),
                    )),
                },
            }
        }),
        function("to_regtype", DataType::Int64, |values| {
            let name = text_of(values, 0);
            Ok(ScalarValue::Int64(name.and_then(|name| type_named(&name))))
        }),
        // The places of an array's elements, as a list: it is unnested.
        function("generate_subscripts", integers(), |values| {
            let numbers = (1..=length_of(values)).map(ScalarValue::from);
            let numbers: Vec<ScalarValue> = numbers.collect();
            let list = ScalarValue::new_list(&numbers, &DataType::Int64, true);
            Ok(ScalarValue::List(list))
        }),
        function("pg_expandarray", expanded(), expand),
        function("json_build_object", DataType::Utf8, |values| {
            let member = |pair: &[ScalarValue]| {
                let key = json(&ScalarValue::from(text_of(pair, 0).unwrap_or_default()));
                format!("{key} : {}", pair.get(1).map_or_else(String::new, json))
            };
            let members: Vec<String> = values.chunks(2).map(member).collect();
            Ok(text(format!("{{{}}}", members.join(", "))))
        }),
    ]
}

/// What a state of the tables knows.
pub(crate) fn of_catalog(seen: &Arc<Seen>) -> Vec<ScalarUDF> {
    let with = || Arc::clone(seen);
    let (constraints, indexes, views) = (with(), with(), with());
    let (visible, numbers, names, found, schemas) = (with(), with(), with(), with(), with());
    let user = seen.user.clone();
    vec![
        function("pg_get_userbyid", DataType::Utf8, move |_| {
            Ok(text(user.clone()))
        }),
        function("pg_get_constraintdef", DataType::Utf8, move |values| {
            let oid = number_of(values, 0);
            Ok(text(oid.and_then(|oid| constraints.definition(oid))))
        }),
        function("pg_get_indexdef", DataType::Utf8, move |values| {
            let Some(oid) = number_of(values, 0) else {
                return Ok(text(None));
            };
            Ok(text(match number_of(values, 1) {
                None | Some(0) => indexes.definition(oid),
                Some(place) => indexes.index_column(oid, place),
            }))
        }),
        function("pg_get_viewdef", DataType::Utf8, move |values| {
            let oid = number_of(values, 0);
            Ok(text(oid.and_then(|oid| views.definition(oid))))
        }),
        function("pg_table_is_visible", DataType::Boolean, move |values| {
            let found = number_of(values, 0).and_then(|oid| visible.relation(oid));
            let is_visible = found.map(|(schema, _)| is_looked_in(schema));
            Ok(ScalarValue::Boolean(is_visible))
        }),
        function("regclass_number", DataType::Int64, move |values| {
            regclass_number(&numbers, values, false)
        }),
        function("to_regclass", DataType::Int64, move |values| {
            regclass_number(&found, values, true)
        }),
        function("regclass_name", DataType::Utf8, move |values| {
            let Some(oid) = number_of(values, 0) else {
                return Ok(text(text_of(values, 0)));
            };
            let named = names.relation(oid);
            let named = named.map(|(schema, name)| match is_looked_in(schema) {
                true => quoted(name),
                false => qualified(schema, name),
            });
            Ok(text(named.unwrap_or_else(|| match oid {
                0 => "-".to_owned(),
                oid => oid.to_string(),
            })))
        }),
        function("regnamespace_name", DataType::Utf8, move |values| {
            let Some(oid) = number_of(values, 0) else {
                return Ok(text(text_of(values, 0)));
            };
            let mut all = schemas.tables.schemas().chain(SCHEMAS);
            let named = all.find(|name| super::numbers::schema(name) == oid);
            Ok(text(named.map_or_else(|| oid.to_string(), str::to_owned)))
        }),
    ]
}

/// Whether relations of a schema are found by their names alone.
fn is_looked_in(schema: &str) -> bool {
    matches!(schema, crate::names::SCHEMA | "pg_catalog")
}

/// The number of the relation that a text names.
fn regclass_number(
    seen: &Seen,
    values: &[ScalarValue],
    may_be_missing: bool,
) -> Result<ScalarValue> {
    if let Some(number) = number_of(values, 0) {
        return Ok(ScalarValue::from(number));
    }
    let Some(written) = text_of(values, 0) else {
        return Ok(ScalarValue::Int64(None));
    };
    let parts = parts_of(&written);
    let is_it = |(_, (schema, name)): &(&i64, &(String, String))| match parts.as_slice() {
        [wanted] => is_looked_in(schema) && name == wanted,
        [within, wanted] => schema == within && name == wanted,
        _ => false,
    };
    let found = seen.relations().iter().find(is_it);
    let found = found.map(|(oid, _)| *oid);
    match (found, may_be_missing) {
        (Some(number), _) => Ok(ScalarValue::from(number)),
        (None, true) => Ok(ScalarValue::Int64(None)),
        (None, false) => Err(Error::new(
            SqlState::UndefinedTable,
            format!("relation \"{written}\" does not exist"),
        )),
    }
}

/// The parts of a written name, folded to lower case unless they are quoted.
fn parts_of(written: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = written.trim().chars().peekable();
    while let Some(character) = characters.next() {
        let last = parts.len() - 1;
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => parts[last].push('"'),
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(String::new()),
            other if is_quoted => parts[last].push(other),
            other => parts[last].extend(other.to_lowercase()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_is_known_by_its_name() {
        let facts = SessionFacts::new(&Arc::default(), "tester");
        let seen = Arc::new(Seen::new(
            &Arc::default(),
            Default::default(),
            Vec::new(),
            "",
            true,
        ));
        let all = of_session(&facts).into_iter().chain(of_catalog(&seen));
        for function in all {
            assert!(is_known(function.name()), "{}", function.name());
        }
    }

    #[test]
    fn written_names_are_taken_apart() {
        assert_eq!(parts_of("Public.\"A\"\"b.c\""), ["public", "A\"b.c"]);
        assert_eq!(parts_of("t"), ["t"]);
    }
}
