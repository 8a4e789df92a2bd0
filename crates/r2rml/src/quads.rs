//! The generator of all quads of a mapping, table by table and batch by batch.
//!
//! The triples of a row that need this row alone come of one scan for each triples map; each object
//! of another triples map of a join of its own. What is in memory are the rows of a batch, and
//! whatever the join keeps, which is counted against the engine's memory.

use std::sync::Arc;

use arrow::array::RecordBatch;
use orrery_sql::{Rows, TableReader};
use orrery_storage::table::{ColumnType, Tables};
use orrery_term::TermId;

use crate::error::{Error, Result};
use crate::model::ROW;
use crate::rules::{Maker, MakerValue, MapRules, Object, Rule, Rules};
use crate::selection::Selection;
use crate::terms::{BatchTexts, BoundMaker, Ids, Scratch};

/// Subject, predicate, object, graph.
pub(crate) type Quad = [TermId; 4];

/// A query, and the quads of each of its rows.
pub(crate) struct Scan {
    /// The triples map, for messages.
    name: String,
    selection: Selection,
    subject: Maker<usize>,
    triples: Vec<Triple>,
}

struct Triple {
    predicate: Maker<usize>,
    object: Maker<usize>,
    graph: Option<Maker<usize>>,
}

/// The same with ids of constants.
pub(crate) struct BoundScan {
    types: Vec<ColumnType>,
    subject: BoundMaker,
    triples: Vec<(BoundMaker, BoundMaker, Option<BoundMaker>)>,
    /// What is in no graph of the mapping's.
    default_graph: TermId,
}

/// The scans of a mapping; without those of graphs that constants name if these are left out.
pub(crate) fn scans(rules: &Rules, has_named_graphs: bool) -> Result<Vec<Scan>> {
    let mut scans = Vec::new();
    for map in &rules.maps {
        let is_own = |rule: &&Rule| matches!(rule.object, Object::Own(_));
        let is_in = |rule: &&Rule| {
            let graph = rule.graph.as_ref().map(|graph| &graph.value);
            has_named_graphs || !matches!(graph, Some(MakerValue::Constant(_)))
        };
        let wanted = || map.rules.iter().filter(is_in);
        let own: Vec<&Rule> = wanted().filter(is_own).collect();
        if !own.is_empty() {
            scans.push(Scan::of(rules, map, &own)?);
        }
        for joined in wanted().filter(|rule| !is_own(rule)) {
            scans.push(Scan::of(rules, map, &[joined])?);
        }
    }
    Ok(scans)
}

impl Scan {
    fn of(all: &Rules, map: &MapRules, rules: &[&Rule]) -> Result<Self> {
        let mut selection = Selection::new(&map.source);
        let subject = selection.maker(0, &map.subject)?;
        let mut triples = Vec::with_capacity(rules.len());
        for rule in rules {
            let object = match &rule.object {
                Object::Own(maker) => selection.maker(0, maker)?,
                Object::Joined { map, maker, joins } => {
                    let side = selection.join(&all.maps[*map].source, joins);
                    selection.maker(side, maker)?
                }
            };
            let graph = rule.graph.as_ref();
            triples.push(Triple {
                predicate: selection.maker(0, &rule.predicate)?,
                object,
                graph: graph.map(|graph| selection.maker(0, graph)).transpose()?,
            });
        }
        Ok(Self {
            name: map.name.clone(),
            selection,
            subject,
            triples,
        })
    }

    /// Begins to read.
    pub(crate) async fn rows(&self, tables: &Arc<Tables>, reader: &TableReader) -> Result<Rows> {
        let text = self.selection.text();
        let numbered = &self.selection.numbered;
        Ok(reader.rows(tables, &text, numbered, ROW).await?)
    }

    /// Fails where the query is none, as where a join compares a number with a text.
    pub(crate) async fn check(&self, tables: &Arc<Tables>, reader: &TableReader) -> Result<()> {
        // Whose rows are numbered, is of the Direct Mapping, and joins what a foreign key does.
        if self.selection.numbered.is_empty() {
            let columns = reader.columns(tables, &self.selection.text()).await;
            columns.map_err(|error| Error::from(error).at(&self.name, "rr:joinCondition"))?;
        }
        Ok(())
    }

    /// With ids for the constants.
    pub(crate) fn bound(self, default_graph: TermId, ids: &mut dyn Ids) -> Result<BoundScan> {
        let mut triples = Vec::with_capacity(self.triples.len());
        for triple in self.triples {
            let graph = triple.graph.map(|graph| BoundMaker::new(graph, ids));
            triples.push((
                BoundMaker::new(triple.predicate, ids)?,
                BoundMaker::new(triple.object, ids)?,
                graph.transpose()?,
            ));
        }
        Ok(BoundScan {
            types: self.selection.types(),
            subject: BoundMaker::new(self.subject, ids)?,
            triples,
            default_graph,
        })
    }
}

impl BoundScan {
    /// The quads of some rows.
    pub(crate) fn quads(
        &self,
        batch: &RecordBatch,
        ids: &mut dyn Ids,
        quads: &mut Vec<Quad>,
    ) -> Result<()> {
        let texts = BatchTexts::new(batch, &self.types)?;
        let mut scratch = Scratch::default();
        for row in 0..texts.rows {
            let Some(subject) = self.subject.id(&texts, row, &mut scratch, ids)? else {
                continue;
            };
            for (predicate, object, graph) in &self.triples {
                let Some(predicate) = predicate.id(&texts, row, &mut scratch, ids)? else {
                    continue;
                };
                let Some(object) = object.id(&texts, row, &mut scratch, ids)? else {
                    continue;
                };
                let graph = match graph {
                    None => Some(self.default_graph),
                    Some(graph) => graph.id(&texts, row, &mut scratch, ids)?,
                };
                if let Some(graph) = graph {
                    quads.push([subject, predicate, object, graph]);
                }
            }
        }
        Ok(())
    }
}
