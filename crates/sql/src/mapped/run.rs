//! The execution of statements about mapped graphs.

use std::sync::Arc;

use orrery_storage::table::{DefinitionChange, RelationId, ViewDefinition};

use super::GraphMappings;
use super::definition::{MappedGraph, SCHEMA};
use super::statement::GraphStatement;
use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::changes::change::Change;
use crate::{Error, Result, SqlState};

/// Mapped graphs of a database.
const GRAPHS_MAX: usize = 1_000;

/// Does one.
pub(crate) async fn run(
    change: &mut Change,
    mappings: Option<&Arc<dyn GraphMappings>>,
    statement: &GraphStatement,
) -> Result<Outcome> {
    let tables = change.tables()?;
    match statement {
        GraphStatement::Create(graph) => {
            if tables.view_named(SCHEMA, &graph.name).is_some() {
                return Err(Error::new(
                    SqlState::DuplicateObject,
                    format!("a mapped graph is called {} already", graph.name),
                ));
            }
            if tables.views().filter(|it| it.schema == SCHEMA).count() >= GRAPHS_MAX {
                return Err(Error::new(
                    SqlState::ProgramLimitExceeded,
                    format!("a database has at most {GRAPHS_MAX} mapped graphs"),
                ));
            }
            let snapshot = change.transaction_mut()?.snapshot()?;
            known(mappings)?.check(graph, &snapshot).await?;
            let view = ViewDefinition {
                id: RelationId(tables.next_relation()),
                schema: SCHEMA.to_owned(),
                name: graph.name.clone(),
                columns: Vec::new(),
                query: graph.statement(),
            };
            let defined = DefinitionChange::DefineView(view);
            change.transaction_mut()?.define(defined)?;
            Ok(Outcome::Done(Tag::Words("CREATE GRAPH")))
        }
        GraphStatement::Drop { name, if_exists } => {
            match tables.view_named(SCHEMA, name) {
                Some(view) => {
                    let dropped = DefinitionChange::DropView(view.id);
                    change.transaction_mut()?.define(dropped)?;
                }
                None if *if_exists => {}
                None => drop(MappedGraph::named(&tables, name)?),
            }
            Ok(Outcome::Done(Tag::Words("DROP GRAPH MAPPING")))
        }
        GraphStatement::Materialize { name, into } => {
            let graph = MappedGraph::named(&tables, name)?;
            let target = into.as_ref().unwrap_or(name);
            if target != name && tables.view_named(SCHEMA, target).is_some() {
                return Err(Error::new(
                    SqlState::DuplicateObject,
                    format!("a mapped graph is called {target} already"),
                ));
            }
            let mappings = Arc::clone(known(mappings)?);
            let (transaction, spending) = (change.lend()?, change.spending());
            let made = mappings.materialize(&graph, target, transaction, spending);
            let (transaction, count) = made.await?;
            change.take_back(transaction);
            // From now on its triples are stored under its name.
            if target == name
                && let Some(view) = tables.view_named(SCHEMA, name)
            {
                let dropped = DefinitionChange::DropView(view.id);
                change.transaction_mut()?.define(dropped)?;
            }
            Ok(Outcome::Done(Tag::Materialize(count)))
        }
    }
}

fn known(mappings: Option<&Arc<dyn GraphMappings>>) -> Result<&Arc<dyn GraphMappings>> {
    mappings.ok_or_else(|| Error::unsupported("a mapped graph here"))
}
