//! The SQL scope of an asker: readable and writable tables, and a state filtered by them.
//!
//! ```text
//! SqlScope (names, whoever asks) -> Sight (of one session) -> all tables of a state
//!                                -> the visible tables: what statements are planned over
//! ```
//!
//! An asker who sees only some tables plans over a state that has only these: catalogs,
//! suggestions, statistics and errors come from there, so that a hidden table looks like a missing
//! one. Rights to change are checked by each statement, before it changes anything. Rules name
//! tables, and hold for past states too.
//!
//! A view gives nothing that its reader may not read: an asker sees a view who sees all tables that
//! the view reads (decision 0043).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use orrery_storage::ReadScope;
use orrery_storage::table::{
    DEFAULT_SCHEMA, RelationId, TableDefinition, TableNames, Tables, ViewDefinition,
};
use parking_lot::Mutex;

use crate::catalog::lookup::shown;
use crate::catalog::named_in::named_in;
use crate::mapped::is_mapped;
use crate::{Error, Result, SqlState};

/// The readable and writable tables of an asker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlScope {
    /// Tables and views that may be read; `None` if all.
    pub reads: Option<TableNames>,
    /// Those whose rows may be changed, and schemas in which all may be defined anew; `None` if
    /// all. Whoever may change one may read it.
    pub writes: Option<TableNames>,
    /// Graphs that may be read.
    pub graphs: ReadScope,
    /// Whether all graphs may be changed.
    pub writes_all_graphs: bool,
}

impl SqlScope {
    /// Whether everything may be read and changed.
    pub fn is_everything(&self) -> bool {
        self.reads.is_none()
            && self.writes.is_none()
            && self.graphs.graphs().is_none()
            && self.writes_all_graphs
    }

    /// Whether what began under one scope may go on under another: where that is the same, or
    /// everything.
    pub(crate) fn lets_go_on(began: Option<&Arc<Self>>, now: Option<&Arc<Self>>) -> bool {
        match (began, now) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(began), Some(now)) => Arc::ptr_eq(began, now) || began == now,
        }
    }

    /// Whether no table may be changed, whichever there are.
    pub fn changes_nothing(&self) -> bool {
        self.writes.as_ref().is_some_and(TableNames::is_empty)
    }
}

/// What a change of rows looks at beside the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsChange {
    /// Rows come: tables that they refer to.
    Come,
    /// Rows go: tables that refer to them.
    Go,
    /// Both.
    Both,
}

/// Tables as a session sees them.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) scope: Arc<SqlScope>,
    /// All tables of the state that was looked at last, and those of them that are seen.
    last: Mutex<Option<(Arc<Tables>, Arc<Tables>)>>,
}

/// The tables of a state that are seen: all where there is no sight.
pub(crate) fn seen_by(sight: Option<&Arc<Sight>>, tables: &Arc<Tables>) -> Arc<Tables> {
    match sight {
        Some(sight) => sight.tables(tables),
        None => Arc::clone(tables),
    }
}

impl Sight {
    pub(crate) fn new(scope: Arc<SqlScope>) -> Self {
        Self {
            scope,
            last: Mutex::default(),
        }
    }

    /// Those of a state that are seen: the same for the same state, so that plans over it can be
    /// kept.
    pub(crate) fn tables(&self, all: &Arc<Tables>) -> Arc<Tables> {
        let Some(reads) = &self.scope.reads else {
            return Arc::clone(all);
        };
        let mut last = self.last.lock();
        if let Some((of, seen)) = &*last
            && Arc::ptr_eq(of, all)
        {
            return Arc::clone(seen);
        }
        let seen = Arc::new(only(all, reads));
        *last = Some((Arc::clone(all), Arc::clone(&seen)));
        seen
    }

    /// Fails unless rows of a table, which is seen, may be changed.
    pub(crate) fn require_rows(
        &self,
        all: &Arc<Tables>,
        table: &TableDefinition,
        change: RowsChange,
    ) -> Result<()> {
        let Some(writes) = &self.scope.writes else {
            return Ok(());
        };
        let name = shown(&table.schema, &table.name);
        if !writes.contains(&table.schema, &table.name) {
            return Err(denied(&format!("table {name}")));
        }
        let seen = self.tables(all);
        // Whether a key is there, or is referred to, would tell what is in a table that may not be
        // read.
        let is_hidden = |id: RelationId| seen.table(id).is_none();
        let own = all.table(table.id).map(|own| own.definition());
        let mut refers = own.iter().flat_map(|own| &own.foreign_keys);
        let comes = change != RowsChange::Go && refers.any(|key| is_hidden(key.table));
        let goes = || {
            let hidden = all.tables().map(|other| other.definition());
            let mut hidden = hidden.filter(|other| is_hidden(other.id));
            hidden.any(|other| other.foreign_keys.iter().any(|key| key.table == table.id))
        };
        match comes || (change != RowsChange::Come && goes()) {
            true => Err(denied(&format!("table {name}")).with_detail(
                "It has a foreign key from or to a table that may not be read, which the change would look into.",
            )),
            false => Ok(()),
        }
    }

    /// Fails unless what is in a schema, which is seen, may be defined anew.
    pub(crate) fn require_schema(&self, schema: &str) -> Result<()> {
        match self.defines_in(schema) {
            true => Ok(()),
            false => Err(denied(&format!("schema {schema}"))),
        }
    }

    fn defines_in(&self, schema: &str) -> bool {
        let writes = self.scope.writes.as_ref();
        writes.is_none_or(|writes| writes.schemas.contains(schema))
    }

    /// Fails unless all tables may be changed. `what` is a statement's first words.
    pub(crate) fn require_all(&self, what: &str) -> Result<()> {
        match self.scope.writes {
            None => Ok(()),
            Some(_) => Err(denied_statement(what, "change all tables")),
        }
    }

    /// The same, and all graphs.
    pub(crate) fn require_all_with_graphs(&self, what: &str) -> Result<()> {
        self.require_all(what)?;
        match self.scope.writes_all_graphs {
            true => Ok(()),
            false => Err(denied_statement(what, "change all graphs")),
        }
    }

    /// Fails where a definition has made a table refer to one whose rows are not to be changed:
    /// what is referred to can neither go nor change its key, whoever owns it.
    pub(crate) fn require_references(&self, before: &Tables, after: &Tables) -> Result<()> {
        let Some(writes) = &self.scope.writes else {
            return Ok(());
        };
        for table in after.tables().map(|table| table.definition()) {
            let known = before.table(table.id).map(|table| table.definition());
            let is_known = |key| known.is_some_and(|known| known.foreign_keys.contains(key));
            for key in table.foreign_keys.iter().filter(|key| !is_known(key)) {
                let Some(target) = after.table(key.table).map(|table| table.definition()) else {
                    continue;
                };
                if !writes.contains(&target.schema, &target.name) {
                    let name = shown(&target.schema, &target.name);
                    return Err(denied(&format!("table {name}")).with_detail(
                        "A foreign key keeps the rows that it refers to from being changed: it needs the right to write to their table.",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Fails where a definition has changed what is in a schema that is not to be changed, such as
    /// a view that reads what has gone.
    pub(crate) fn require_changed_within(&self, before: &Tables, after: &Tables) -> Result<()> {
        if self.scope.writes.is_none() {
            return Ok(());
        }
        let changed_schema = changed(before, after).find(|schema| !self.defines_in(schema));
        match changed_schema {
            None => Ok(()),
            Some(_) => Err(denied("other objects that depend on it")),
        }
    }
}

/// The schemas of tables and views that are not the same in two states, and those that have gone or
/// come.
fn changed<'t>(before: &'t Tables, after: &'t Tables) -> impl Iterator<Item = &'t str> {
    let tables = |one: &'t Tables, other: &'t Tables| {
        let definitions = one.with_system_tables().map(|table| table.definition());
        definitions.filter_map(move |definition| {
            let same = other.table(definition.id).map(|table| table.definition());
            let is_same = same.is_some_and(|same| same == definition);
            (!is_same).then_some(definition.schema.as_str())
        })
    };
    let views = |one: &'t Tables, other: &'t Tables| {
        one.views().filter_map(move |view| {
            let same = other.view_named(&view.schema, &view.name);
            let is_same = same.is_some_and(|same| same == view);
            (!is_same).then_some(view.schema.as_str())
        })
    };
    let schemas = |one: &'t Tables, other: &'t Tables| {
        let names = one.schemas();
        names.filter(move |name| !other.has_schema(name))
    };
    let tables = tables(before, after).chain(tables(after, before));
    let views = views(before, after).chain(views(after, before));
    let schemas = schemas(before, after).chain(schemas(after, before));
    tables.chain(views).chain(schemas)
}

/// What PostgreSQL says of what is there and not to be changed.
fn denied(what: &str) -> Error {
    Error::new(
        SqlState::InsufficientPrivilege,
        format!("permission denied for {what}"),
    )
}

fn denied_statement(what: &str, right: &str) -> Error {
    Error::new(
        SqlState::InsufficientPrivilege,
        format!("permission denied for {what}: only who may {right} may do that"),
    )
}

/// The tables of a list, the views of it that read nothing else, and their schemas.
fn only(all: &Tables, reads: &TableNames) -> Tables {
    let mut views = SeenViews {
        all,
        reads,
        known: HashMap::new(),
    };
    let seen_views = all.views().filter(|view| views.sees(view));
    let seen_views: BTreeSet<RelationId> = seen_views.map(|view| view.id).collect();
    let has_table =
        |definition: &TableDefinition| reads.contains(&definition.schema, &definition.name);
    let has_view = |view: &ViewDefinition| seen_views.contains(&view.id);
    let mut schemas: BTreeSet<String> = all
        .schemas()
        .filter(|schema| *schema == DEFAULT_SCHEMA || reads.schemas.contains(*schema))
        .map(str::to_owned)
        .collect();
    let tables = all.tables().map(|table| table.definition());
    let tables = tables.filter(|it| has_table(it)).map(|it| &it.schema);
    let views = all.views().filter(|it| has_view(it)).map(|it| &it.schema);
    let with_something: Vec<&String> = tables.chain(views).collect();
    schemas.extend(with_something.into_iter().cloned());
    all.only(schemas, has_table, has_view)
}

/// Which views are seen.
struct SeenViews<'t> {
    all: &'t Tables,
    reads: &'t TableNames,
    known: HashMap<RelationId, bool>,
}

impl SeenViews<'_> {
    /// Whether the view and all that it reads may be read. What is there no more hides nothing.
    fn sees(&mut self, view: &ViewDefinition) -> bool {
        if let Some(known) = self.known.get(&view.id) {
            return *known;
        }
        // A circle, which there is none of, would end here.
        self.known.insert(view.id, false);
        let is_listed = !is_mapped(&view.query) && self.reads.contains(&view.schema, &view.name);
        let is_seen = is_listed
            && match named_in(&view.query) {
                Ok(named) => {
                    named
                        .iter()
                        .all(|(schema, name)| match self.all.view_named(schema, name) {
                            Some(inner) => self.sees(inner),
                            None => {
                                self.all.table_named(schema, name).is_none()
                                    || self.reads.contains(schema, name)
                            }
                        })
                }
                // What cannot be read any more shows nothing to anybody.
                Err(_) => false,
            };
        self.known.insert(view.id, is_seen);
        is_seen
    }
}
