//! The columns of a class of entities, discovered in the data for a view.
//!
//! ```text
//!   class('http://e/C')  ->  class('http://e/C', '"label" text <http://e/label>, "price" numeric(38,10) <http://e/price>')
//! ```
//!
//! A column is made of each property that at least a tenth of the entities has, and none has twice,
//! the most frequent ones first. Its name is the end of the property's IRI, its type that of its
//! datatypes: numbers of several kinds become the widest, values of several kinds texts. All values
//! of the class are looked at for that, once: what a view promises holds for what is there when it
//! is made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Query, TableFactor, Value, VisitorMut,
};
use orrery_storage::table::ColumnType;

use crate::changes::change::Change;
use crate::changes::rows::all_rows;
use crate::graph::{ENTITY, IRI_TYPE, SeenGraphs};
use crate::parse::statement::parse_one;
use crate::parse::visit::visit_mut;
use crate::values::iri::require_iri;
use crate::{Error, Result, SqlState};

/// The part of its entities that have a property which becomes a column: one of so many.
const COVERED_MIN: i64 = 10;
/// Columns of a class.
const COLUMNS_MAX: usize = 1_000;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 63;
/// What tells the class of an entity is no property of it.
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// A query in which each `class('iri')` has its columns.
pub(super) async fn with_columns(change: &Change, query: &Query) -> Result<Query> {
    let mut query = query.clone();
    let mut classes = Classes::default();
    let _: ControlFlow<()> = visit_mut(&mut query, &mut classes);
    let mut lists = VecDeque::new();
    for iri in &classes.iris {
        lists.push_back(columns(change, iri).await?);
    }
    if !lists.is_empty() {
        classes.lists = Some(lists);
        let _: ControlFlow<()> = visit_mut(&mut query, &mut classes);
    }
    Ok(query)
}

/// Finds the classes of a query, and then gives them their columns.
#[derive(Default)]
struct Classes {
    iris: Vec<String>,
    lists: Option<VecDeque<String>>,
}

impl VisitorMut for Classes {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table {
            name,
            args: Some(args),
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))] = &args.args[..]
        else {
            return ControlFlow::Continue(());
        };
        let Value::SingleQuotedString(iri) = &value.value else {
            return ControlFlow::Continue(());
        };
        if name.to_string().eq_ignore_ascii_case("class") {
            match &mut self.lists {
                None => self.iris.push(iri.clone()),
                Some(lists) => {
                    let list = lists.pop_front().unwrap_or_default();
                    let list = Expr::Value(Value::SingleQuotedString(list).with_empty_span());
                    args.args
                        .push(FunctionArg::Unnamed(FunctionArgExpr::Expr(list)));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The columns of a class, as the list that the function takes.
async fn columns(change: &Change, iri: &str) -> Result<String> {
    require_iri(iri)?;
    let graphs = change.graphs();
    let graphs = graphs.ok_or_else(|| Error::unsupported("a class without graphs"))?;
    let entities = format!("SELECT (COUNT(DISTINCT ?s) AS ?n) {{ ?s a <{iri}> }}");
    let entities = solutions(change, &entities, "n").await?;
    let entities = numbers(&entities, 0).next().unwrap_or(0);
    if entities == 0 {
        return Err(Error::new(
            SqlState::UndefinedObject,
            format!("there are no entities of the class <{iri}>"),
        )
        .with_hint("SELECT * FROM classes() has the classes that there are."));
    }
    let counts = format!(
        "SELECT ?p (COUNT(DISTINCT ?s) AS ?e) (COUNT(?o) AS ?n) {{ ?s a <{iri}> ; ?p ?o }} GROUP BY ?p"
    );
    let counts = solutions(change, &counts, "e DESC, p").await?;
    let kinds = format!(
        "SELECT ?p ?d (COUNT(?o) AS ?n) {{ ?s a <{iri}> ; ?p ?o BIND(STR(DATATYPE(?o)) AS ?d) }} GROUP BY ?p ?d"
    );
    let kinds = kinds_of(&solutions(change, &kinds, "p, d").await?, graphs);
    let mut names = BTreeSet::from([ENTITY.to_owned()]);
    let mut list = Vec::new();
    let properties = texts(&counts, 0).zip(numbers(&counts, 1).zip(numbers(&counts, 2)));
    for (property, (having, values)) in properties {
        let Some(property) = property.filter(|property| *property != TYPE) else {
            continue;
        };
        if having < values || having.saturating_mul(COVERED_MIN) < entities {
            continue;
        }
        if require_iri(property).is_err() || list.len() == COLUMNS_MAX {
            continue;
        }
        let kind = kinds.get(property).copied().unwrap_or(Kind::Text);
        let name = unique_name(property, &mut names);
        list.push(format!("\"{name}\" {} <{property}>", kind.written()));
    }
    Ok(list.join(", "))
}

/// The solutions of a query, in an order.
async fn solutions(change: &Change, query: &str, order: &str) -> Result<RecordBatch> {
    let text = format!(
        "SELECT * FROM sparql('{}') ORDER BY {order}",
        query.replace('\'', "''")
    );
    let planner = change.planner()?;
    let plan = planner.logical(parse_one(&text)?, &text).await?;
    let rows = planner.stream(&plan, &text).await?;
    all_rows(rows, &change.memory("columns of a class")).await
}

fn numbers(batch: &RecordBatch, column: usize) -> impl Iterator<Item = i64> + '_ {
    let numbers = batch.column(column).as_primitive_opt::<Int64Type>();
    let rows = 0..batch.num_rows();
    rows.map(move |row| numbers.map_or(0, |numbers| numbers.value(row)))
}

fn texts(batch: &RecordBatch, column: usize) -> impl Iterator<Item = Option<&str>> + '_ {
    let texts = batch.column(column).as_string_view_opt();
    let rows = 0..batch.num_rows();
    rows.map(move |row| texts.and_then(|texts| texts.is_valid(row).then(|| texts.value(row))))
}

/// What the values of a property are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Iri,
    Of(ColumnType),
    Text,
}

impl Kind {
    fn written(self) -> String {
        match self {
            Self::Iri => IRI_TYPE.to_owned(),
            Self::Of(column_type) => column_type.to_string(),
            Self::Text => "text".to_owned(),
        }
    }

    /// What both are.
    fn and(self, other: Self) -> Self {
        use ColumnType::{BigInt, Decimal, Double};
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Of(Double), Self::Of(BigInt | Decimal { .. }))
            | (Self::Of(BigInt | Decimal { .. }), Self::Of(Double)) => Self::Of(Double),
            (decimal @ Self::Of(Decimal { .. }), Self::Of(BigInt))
            | (Self::Of(BigInt), decimal @ Self::Of(Decimal { .. })) => decimal,
            _ => Self::Text,
        }
    }
}

fn kinds_of(batch: &RecordBatch, graphs: &SeenGraphs) -> BTreeMap<String, Kind> {
    let mut kinds = BTreeMap::new();
    for (property, datatype) in texts(batch, 0).zip(texts(batch, 1)) {
        let kind = match datatype {
            None => Kind::Iri,
            Some(datatype) => graphs
                .source
                .column_type(datatype)
                .map_or(Kind::Text, Kind::Of),
        };
        let property = property.unwrap_or_default().to_owned();
        let known = kinds.entry(property).or_insert(kind);
        *known = known.and(kind);
    }
    kinds
}

/// The end of an IRI in small letters, as a name that no other column has.
fn unique_name(property: &str, names: &mut BTreeSet<String>) -> String {
    let end = property.trim_end_matches(['/', '#']);
    let end = end.rsplit(['/', '#', ':']).next().unwrap_or_default();
    let letters = end.chars().flat_map(char::to_lowercase);
    let letters = letters.map(|c| if c.is_alphanumeric() { c } else { '_' });
    let mut name: String = letters.collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_numeric()) {
        name.insert(0, '_');
    }
    let cut = |name: &str, bytes: usize| {
        let mut end = name.len().min(bytes);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name[..end].to_owned()
    };
    let mut unique = cut(&name, NAME_BYTES_MAX);
    let mut number = 2;
    while !names.insert(unique.clone()) {
        let ending = format!("_{number}");
        unique = cut(&name, NAME_BYTES_MAX - ending.len()) + &ending;
        number += 1;
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_ends_of_iris_and_unique() {
        let mut names = BTreeSet::from([ENTITY.to_owned()]);
        for (property, expected) in [
            (
                "http://e/productPropertyNumeric1",
                "productpropertynumeric1",
            ),
            (
                "http://other/#productPropertyNumeric1",
                "productpropertynumeric1_2",
            ),
            ("http://e/IRI", "iri_2"),
            ("urn:x:2nd-name", "_2nd_name"),
            ("http://e/\u{c4}rger/", "\u{e4}rger"),
            ("http:///", "_"),
        ] {
            assert_eq!(unique_name(property, &mut names), expected);
        }
        let long = format!("http://e/{}", "\u{e4}".repeat(40));
        assert_eq!(unique_name(&long, &mut names).len(), 62);
        assert_eq!(unique_name(&long, &mut names).len(), 62);
    }

    #[test]
    fn several_kinds_become_the_widest() {
        let decimal = Kind::Of(ColumnType::Decimal {
            precision: 38,
            scale: 10,
        });
        let (integer, double) = (Kind::Of(ColumnType::BigInt), Kind::Of(ColumnType::Double));
        assert_eq!(integer.and(decimal), decimal);
        assert_eq!(decimal.and(integer).and(double), double);
        assert_eq!(integer.and(Kind::Iri), Kind::Text);
        assert_eq!(Kind::Of(ColumnType::Date).and(integer), Kind::Text);
        assert_eq!(Kind::Iri.and(Kind::Iri), Kind::Iri);
    }
}
