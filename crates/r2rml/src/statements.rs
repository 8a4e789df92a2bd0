//! The SQL statements about mapped graphs: checks of `CREATE GRAPH`, copies of `MATERIALIZE GRAPH`.

use std::sync::Arc;

use async_trait::async_trait;
use orrery_sparql::graph_exists;
use orrery_sql::{GraphMappings, MappedGraph, Spending, SqlState};
use orrery_storage::{ReadView, Snapshot, Transaction};
use oxiri::Iri;

use crate::definitions::mapping_of;
use crate::error::{Error, Result};
use crate::materialize::materialize;
use crate::quads::scans;
use crate::rules::Rules;
use crate::table_mappings::TableMappings;

impl TableMappings {
    async fn checked(&self, graph: &MappedGraph, snapshot: &Arc<Snapshot>) -> Result<()> {
        absolute(&graph.name)?;
        let tables = snapshot.tables();
        let mapping = mapping_of(graph, tables)?;
        let rules = Rules::of(&mapping, tables, self.reader()).await?;
        let others = MappedGraph::all(tables)?;
        let mut taken = Vec::new();
        for other in &others {
            taken.push(other.name.clone());
            // One that does not fit its tables any more takes no other names.
            if let Ok(mapping) = mapping_of(other, tables)
                && let Ok(rules) = Rules::of(&mapping, tables, self.reader()).await
            {
                taken.extend(rules.named_graphs().map(str::to_owned));
            }
        }
        let view = ReadView::of_process(Arc::clone(snapshot));
        let named = rules.named_graphs();
        for name in named.chain([graph.name.as_str()]) {
            if taken.iter().any(|taken| taken == name) {
                return Err(Error::Taken(format!(
                    "a mapped graph is called {name} already"
                )));
            }
            let is_stored = graph_exists(&view, Some(name));
            if is_stored.map_err(|error| Error::Words(error.to_string()))? {
                return Err(Error::Taken(format!(
                    "quads are stored in the graph {name}; drop it, or choose another name"
                )));
            }
        }
        for scan in scans(&rules, true)? {
            scan.check(tables, self.reader()).await?;
        }
        Ok(())
    }
}

fn absolute(name: &str) -> Result<()> {
    match Iri::parse(name) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Words(format!(
            "the name <{name}> of the graph is no absolute IRI: {error}"
        ))),
    }
}

#[async_trait]
impl GraphMappings for TableMappings {
    async fn check(&self, graph: &MappedGraph, snapshot: &Arc<Snapshot>) -> orrery_sql::Result<()> {
        Ok(self.checked(graph, snapshot).await?)
    }

    async fn materialize(
        &self,
        graph: &MappedGraph,
        target: &str,
        transaction: Transaction,
        spending: Option<Arc<Spending>>,
    ) -> orrery_sql::Result<(Transaction, u64)> {
        absolute(target)?;
        let tables = Arc::clone(transaction.tables());
        let mapping = mapping_of(graph, &tables)?;
        let place = (target, target == graph.name);
        let reader = match &spending {
            Some(spending) => &self.reader().paid_by(Arc::clone(spending)),
            None => self.reader(),
        };
        let made = materialize(&mapping, &tables, reader, place, transaction, spending).await;
        Ok(made.map_err(|error| match error {
            Error::Storage(orrery_storage::Error::TransactionMemory { .. }) => {
                orrery_sql::Error::new(
                    SqlState::OutOfMemory,
                    format!("MATERIALIZE GRAPH {}: {error}", graph.name),
                )
                .with_hint("A graph that is mapped can be asked without a copy; or raise --memory.")
            }
            error => error.into(),
        })?)
    }
}
