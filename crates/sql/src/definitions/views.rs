//! `CREATE VIEW`, `DROP VIEW`.
//!
//! A view is its query as a text, and the names of its columns; it is planned anew in each
//! statement that names it. So it is checked when it is made, and again whenever what it reads is
//! to go or change: by planning all views over what would be.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{CreateTableOptions, CreateView, ObjectName, Query};
use orrery_storage::Transaction;
use orrery_storage::table::{DefinitionChange, RelationId, Tables, ViewDefinition};

use super::classes::with_columns;
use crate::catalog::lookup::{free_relation_name, shown, still_needed, undefined};
use crate::catalog::named_in::named_in;
use crate::changes::change::Change;
use crate::files::is_external;
use crate::parse::identifiers::{folded, qualified};
use crate::parse::statement::OldTable;
use crate::parse::visit::visit_relations;
use crate::semantics::column_names::shown_name;
use crate::values::data_types::type_of_values;
use crate::{Error, Result, SqlState};

/// Views that a database may have.
pub(super) const VIEWS_MAX: usize = 10_000;

/// Makes a view, or gives one another query.
pub(super) async fn create(change: &mut Change, view: &CreateView, text: &str) -> Result<()> {
    refuse_options(view)?;
    let (schema, name) = qualified(&view.name)?;
    let tables = change.tables()?;
    let planner = change.planner()?;
    let query = with_columns(change, &view.query).await?;
    if reads_old(&query) {
        return Err(Error::unsupported("FOR SYSTEM_TIME in a view"));
    }
    let plan = planner.query(query.clone(), text).await?;
    let fields = plan.schema().fields();
    let given = view.columns.iter().map(|column| folded(&column.name));
    let given: Vec<String> = given.collect::<Result<_>>()?;
    if given.len() > fields.len() {
        return Err(Error::new(
            SqlState::InvalidTableDefinition,
            "CREATE VIEW specifies more column names than columns",
        ));
    }
    let others = fields.iter().skip(given.len());
    let columns: Vec<String> = given
        .iter()
        .cloned()
        .chain(others.map(|field| shown_name(field.name()).to_owned()))
        .collect();
    let mut seen = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(Error::new(
            SqlState::DuplicateColumn,
            format!("column \"{twice}\" specified more than once"),
        ));
    }
    for (field, name) in fields.iter().zip(&columns) {
        type_of_values(name, field.data_type())?;
    }
    let old = tables.view_named(&schema, &name);
    let id = match (old, view.or_replace) {
        (Some(old), true) if !is_external(&old.query) => {
            let kept = old
                .columns
                .iter()
                .zip(&columns)
                .all(|(one, two)| one == two);
            if !kept || columns.len() < old.columns.len() {
                return Err(Error::new(
                    SqlState::InvalidTableDefinition,
                    "cannot drop or rename columns of a view",
                ));
            }
            refuse_circle(&tables, &query.to_string(), old)?;
            old.id
        }
        _ => {
            if let Err(error) = free_relation_name(&tables, &schema, &name) {
                let is_allowed = view.if_not_exists && error.state == SqlState::DuplicateTable;
                return if is_allowed { Ok(()) } else { Err(error) };
            }
            if tables.views().count() >= VIEWS_MAX {
                return Err(Error::new(
                    SqlState::ProgramLimitExceeded,
                    format!("a database has at most {VIEWS_MAX} views"),
                ));
            }
            RelationId(tables.next_relation())
        }
    };
    let view = ViewDefinition {
        id,
        schema,
        name,
        columns,
        query: query.to_string(),
    };
    let defined = DefinitionChange::DefineView(view);
    change
        .apply(move |transaction| Ok(transaction.define(defined)?))
        .await
}

/// Whether a query reads a table as it was: a state that is not kept for ever.
fn reads_old(query: &Query) -> bool {
    let found = visit_relations(query, |name| {
        let parts = name.0.iter().filter_map(|part| part.as_ident());
        let parts: Vec<&str> = parts.map(|part| part.value.as_str()).collect();
        match parts[..] {
            [schema, name] if OldTable::of(schema, name).is_some() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    found.is_break()
}

fn refuse_options(view: &CreateView) -> Result<()> {
    let given = [
        (view.materialized, "a materialized view"),
        (view.temporary, "a temporary view"),
        (
            view.or_alter
                || view.secure
                || view.params.is_some()
                || view.to.is_some()
                || !view.cluster_by.is_empty()
                || view.with_no_schema_binding
                || !matches!(view.options, CreateTableOptions::None)
                || view
                    .columns
                    .iter()
                    .any(|it| it.data_type.is_some() || it.options.is_some()),
            "an option of CREATE VIEW",
        ),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

/// The views that read a table or view.
pub(super) fn readers(
    tables: &Tables,
    schema: &str,
    name: &str,
) -> Result<Vec<Arc<ViewDefinition>>> {
    let place = (schema.to_owned(), name.to_owned());
    let mut readers = Vec::new();
    for view in tables.views() {
        if named_in(&view.query)?.contains(&place) {
            readers.push(Arc::clone(view));
        }
    }
    Ok(readers)
}

/// Fails if a view gives other columns now that a table which it reads has one more: its `*` is a
/// text, and its columns are named by their places.
pub(super) async fn require_unchanged(change: &Change, table: &ObjectName) -> Result<()> {
    let (schema, name) = qualified(table)?;
    let tables = change.tables()?;
    let seen = change.seen()?;
    let planner = change.planner_over_all()?;
    for view in readers(&tables, &schema, &name)? {
        let is_natural = view
            .query
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word.eq_ignore_ascii_case("natural"));
        let width = match planner.view(&view).await {
            Ok(plan) => Some(plan.schema().fields().len()),
            Err(_) => None,
        };
        if is_natural || width != Some(view.columns.len()) {
            if seen.view_named(&view.schema, &view.name).is_none() {
                return Err(Error::new(
                    SqlState::DependentObjectsStillExist,
                    format!("cannot add a column to table {name}: other objects depend on it"),
                ));
            }
            let view = shown(&view.schema, &view.name);
            return Err(Error::new(
                SqlState::DependentObjectsStillExist,
                format!(
                    "cannot add a column to table {name}: the columns of view {view} would change"
                ),
            )
            .with_hint(format!(
                "Drop view {view}, and create it anew, with names in the place of *."
            )));
        }
    }
    Ok(())
}

fn refuse_circle(tables: &Tables, query: &str, view: &ViewDefinition) -> Result<()> {
    let mut rest: Vec<(String, String)> = named_in(query)?.into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(place) = rest.pop() {
        if place == (view.schema.clone(), view.name.clone()) {
            return Err(Error::new(
                SqlState::InvalidTableDefinition,
                format!("the query of view \"{}\" reads the view itself", view.name),
            ));
        }
        if let Some(inner) = tables.view_named(&place.0, &place.1)
            && seen.insert(place)
        {
            rest.extend(named_in(&inner.query)?);
        }
    }
    Ok(())
}

/// Drops a view.
pub(super) fn drop(
    transaction: &mut Transaction,
    seen: &Tables,
    name: &ObjectName,
    if_exists: bool,
    cascade: bool,
) -> Result<()> {
    let (schema, name) = qualified(name)?;
    let view = seen.view_named(&schema, &name);
    let Some(view) = view.filter(|view| !is_external(&view.query)) else {
        if view.is_some() || seen.table_named(&schema, &name).is_some() {
            return Err(Error::new(
                SqlState::WrongObjectType,
                format!("\"{name}\" is not a view"),
            )
            .with_hint("Use DROP TABLE to remove a table."));
        }
        return match if_exists {
            true => Ok(()),
            false => Err(undefined("view", &shown(&schema, &name))),
        };
    };
    let what = format!("view {}", shown(&schema, &name));
    drop_dependent(transaction, &schema, &name, &what, cascade)?;
    transaction.define(DefinitionChange::DropView(view.id))?;
    Ok(())
}

/// Drops an external table; false where there is none of that name.
pub(super) fn drop_external(
    transaction: &mut Transaction,
    seen: &Tables,
    name: &ObjectName,
    cascade: bool,
) -> Result<bool> {
    let (schema, name) = qualified(name)?;
    let table = seen.view_named(&schema, &name);
    let Some(table) = table.filter(|table| is_external(&table.query)) else {
        return Ok(false);
    };
    let what = format!("table {}", shown(&schema, &name));
    drop_dependent(transaction, &schema, &name, &what, cascade)?;
    transaction.define(DefinitionChange::DropView(table.id))?;
    Ok(true)
}

/// Drops the views that read a table or view, and those over them; fails if there are some and that
/// is not wanted.
pub(super) fn drop_dependent(
    transaction: &mut Transaction,
    schema: &str,
    name: &str,
    what: &str,
    cascade: bool,
) -> Result<()> {
    let tables = Arc::clone(transaction.tables());
    for view in readers(&tables, schema, name)? {
        if !cascade {
            return Err(still_needed(what).with_detail(format!(
                "view {} depends on {what}",
                shown(&view.schema, &view.name)
            )));
        }
        drop_dependent(transaction, &view.schema, &view.name, what, true)?;
        transaction.define(DefinitionChange::DropView(view.id))?;
    }
    Ok(())
}
