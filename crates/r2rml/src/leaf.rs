//! A leaf of a SPARQL plan over a mapped graph: a SQL query, and the terms from its rows.
//!
//! Only columns are read of which something is made that is needed: a variable of the answer, a
//! term that must be the same as another, or as a constant that SQL cannot compare.

use std::fmt;
use std::sync::Arc;

use datafusion_common::DataFusionError;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use orrery_operators::QueryContext;
use orrery_operators::source::{SolutionSource, SourceRows};
use orrery_sparql::mapped::{MappedComparison, MappedCondition, MappedRows, MappedTerm};
use orrery_storage::table::ColumnType;
use orrery_term::{Term, TermId};

use crate::error::{Error, Result};
use crate::mapped_query::MappedQuery;
use crate::model::ROW;
use crate::rules::{Column, Maker, MakerValue, Rules};
use crate::selection::Selection;
use crate::sql_tests::{add_equal, add_number};
use crate::terms::{BatchTexts, BoundMaker, Ids, Scratch};

/// What rows are expected to be left by a constant.
const LEFT_BY_CONSTANT: f64 = 0.01;

/// A triples map's rows, with those that are joined to them, for some patterns.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) query: Arc<MappedQuery>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) map: usize,
    /// Further sides: of which map, and which columns are equal.
    pub(crate) joins: Vec<(usize, Vec<(Column, Column)>)>,
    pub(crate) positions: Vec<Position>,
}

/// A position of a pattern, and how its term is made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Position {
    pub(crate) side: usize,
    pub(crate) maker: Maker<Column>,
    pub(crate) term: MappedTerm,
}

impl Position {
    fn variable(&self) -> Option<&Arc<str>> {
        match &self.term {
            MappedTerm::Variable(name) => Some(name),
            MappedTerm::Constant(_) => None,
        }
    }
}

impl MappedRows for Leaf {
    fn expected_rows(&self) -> f64 {
        let map = &self.rules.maps[self.map];
        let mut rows = map.rows;
        for position in &self.positions {
            let is_made = !matches!(position.maker.value, MakerValue::Constant(_));
            if is_made && position.variable().is_none() {
                let is_subject = position.maker == map.subject && map.is_unique;
                rows = match is_subject {
                    true => rows.min(1.0),
                    false => rows * LEFT_BY_CONSTANT,
                };
            }
        }
        rows.max(1.0)
    }

    fn source(
        &self,
        variables: &[Arc<str>],
        conditions: &[MappedCondition],
    ) -> Arc<dyn SolutionSource> {
        let mut selection = Selection::new(&self.rules.maps[self.map].source);
        for (map, on) in &self.joins {
            selection.join(&self.rules.maps[*map].source, on);
        }
        for position in &self.positions {
            // A NULL makes no term, and without a term there is no triple.
            for column in position.maker.columns() {
                selection.condition(position.side, column, "IS NOT NULL");
            }
            if let MappedTerm::Constant(term) = &position.term
                && !matches!(position.maker.value, MakerValue::Constant(_))
            {
                add_equal(&mut selection, position.side, &position.maker, term);
            }
        }
        for condition in conditions {
            self.hint(&mut selection, condition);
        }
        let mut made = Vec::new();
        for position in &self.positions {
            let is_needed = match &position.term {
                MappedTerm::Variable(name) => {
                    let same = self
                        .positions
                        .iter()
                        .filter(|it| it.variable() == Some(name));
                    variables.contains(name) || same.count() > 1
                }
                // Rules whose constants are others were left out.
                MappedTerm::Constant(_) => !matches!(position.maker.value, MakerValue::Constant(_)),
            };
            if is_needed && let Ok(maker) = selection.maker(position.side, &position.maker) {
                made.push((position.term.clone(), maker));
            }
        }
        Arc::new(LeafSource {
            query: Arc::clone(&self.query),
            types: selection.types(),
            text: selection.text(),
            numbered: selection.numbered,
            made,
            variables: variables.to_vec(),
            name: self.rules.maps[self.map].name.clone(),
        })
    }
}

impl Leaf {
    /// Adds what a filter says of a variable.
    fn hint(&self, selection: &mut Selection, condition: &MappedCondition) {
        let name = Some(&condition.variable);
        let Some(position) = self.positions.iter().find(|it| it.variable() == name) else {
            return;
        };
        let (side, maker) = (position.side, &position.maker);
        let is_iri = matches!(condition.term, Term::Iri(_));
        let is_string = matches!(&condition.term, Term::Literal(literal)
            if literal.kind == orrery_term::LiteralKind::String);
        let is_made = !matches!(maker.value, MakerValue::Constant(_));
        let operator = match condition.comparison {
            MappedComparison::Same if is_made => {
                return add_equal(selection, side, maker, &condition.term);
            }
            // What is equal to an IRI is that IRI, and to a string a string.
            MappedComparison::Equal if is_made && (is_iri || is_string) => {
                return add_equal(selection, side, maker, &condition.term);
            }
            MappedComparison::Same => return,
            MappedComparison::Equal => "=",
            MappedComparison::Less => "<",
            MappedComparison::LessOrEqual => "<=",
            MappedComparison::Greater => ">",
            MappedComparison::GreaterOrEqual => ">=",
        };
        add_number(selection, side, maker, operator, &condition.term);
    }
}

/// The query of a leaf, and what is made of its rows.
struct LeafSource {
    query: Arc<MappedQuery>,
    name: String,
    text: String,
    numbered: Vec<(String, String)>,
    types: Vec<ColumnType>,
    made: Vec<(MappedTerm, Maker<usize>)>,
    variables: Vec<Arc<str>>,
}

impl fmt::Debug for LeafSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafSource")
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

impl SolutionSource for LeafSource {
    fn solutions(
        &self,
        context: &Arc<QueryContext>,
    ) -> BoxStream<'static, datafusion_common::Result<SourceRows>> {
        let run = Run {
            query: Arc::clone(&self.query),
            context: Arc::clone(context),
            text: self.text.clone(),
            numbered: self.numbered.clone(),
            types: self.types.clone(),
            made: self.made.clone(),
            variables: self.variables.clone(),
        };
        let solutions = async move { run.begin().await.map_err(of_run) };
        futures::stream::once(solutions).try_flatten().boxed()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARS_MAX: usize = 400;
        let words: Vec<&str> = self.text.split_whitespace().collect();
        let text = words.join(" ").replace('\u{1}', "");
        let shown: String = text.chars().take(CHARS_MAX).collect();
        let more = if shown.len() < text.len() { "..." } else { "" };
        write!(f, "{}, {shown}{more}", self.name)
    }
}

fn of_run(error: Error) -> DataFusionError {
    match error {
        Error::Storage(error) => orrery_operators::Error::Storage(error).into(),
        Error::Sql(error) => match error.state.code() {
            "53200" => DataFusionError::ResourcesExhausted(error.to_string()),
            _ => orrery_operators::Error::Unsupported(format!("in SQL: {error}")).into(),
        },
        other => orrery_operators::Error::Unsupported(other.to_string()).into(),
    }
}

/// A run of a leaf.
struct Run {
    query: Arc<MappedQuery>,
    context: Arc<QueryContext>,
    text: String,
    numbered: Vec<(String, String)>,
    types: Vec<ColumnType>,
    made: Vec<(MappedTerm, Maker<usize>)>,
    variables: Vec<Arc<str>>,
}

/// What becomes of a term.
enum Use {
    /// It must be this one.
    Is(TermId),
    /// It is the value of a variable, which has a place among all that are made.
    Variable(usize),
}

impl Run {
    async fn begin(self) -> Result<BoxStream<'static, datafusion_common::Result<SourceRows>>> {
        let query = Arc::clone(&self.query);
        let rows = query
            .reader
            .rows(&query.tables, &self.text, &self.numbered, ROW);
        let rows = rows.await?;
        let mut ids = QueryIds {
            query: &self.query,
            context: &self.context,
        };
        let mut names = self.variables.clone();
        let mut uses = Vec::with_capacity(self.made.len());
        for (term, maker) in &self.made {
            let used = match term {
                MappedTerm::Constant(term) => Use::Is(ids.intern(term)?),
                MappedTerm::Variable(name) => {
                    let place = names.iter().position(|it| it == name);
                    Use::Variable(place.unwrap_or_else(|| {
                        names.push(Arc::clone(name));
                        names.len() - 1
                    }))
                }
            };
            uses.push((used, BoundMaker::new(maker.clone(), &mut ids)?));
        }
        let width = names.len();
        let batches = rows.map(move |batch| {
            let batch = batch?;
            let solutions = self.solutions(&batch, &uses, width);
            solutions.map_err(of_run)
        });
        Ok(batches.boxed())
    }

    fn solutions(
        &self,
        batch: &arrow::array::RecordBatch,
        uses: &[(Use, BoundMaker)],
        width: usize,
    ) -> Result<SourceRows> {
        let mut ids = QueryIds {
            query: &self.query,
            context: &self.context,
        };
        let texts = BatchTexts::new(batch, &self.types)?;
        let mut scratch = Scratch::default();
        let mut solutions = SourceRows {
            rows: 0,
            columns: vec![Vec::with_capacity(texts.rows); self.variables.len()],
        };
        let mut row_ids: Vec<Option<TermId>> = vec![None; width];
        'rows: for row in 0..texts.rows {
            row_ids.fill(None);
            for (used, maker) in uses {
                let Some(id) = maker.id(&texts, row, &mut scratch, &mut ids)? else {
                    continue 'rows;
                };
                let is_same = match used {
                    Use::Is(wanted) => id == *wanted,
                    Use::Variable(place) => *row_ids[*place].get_or_insert(id) == id,
                };
                if !is_same {
                    continue 'rows;
                }
            }
            for (column, id) in solutions.columns.iter_mut().zip(&row_ids) {
                let id = id.ok_or_else(|| {
                    Error::Words("a variable of a mapped graph has no value".to_owned())
                })?;
                column.push(id);
            }
            solutions.rows += 1;
        }
        Ok(solutions)
    }
}

/// Ids of a query.
struct QueryIds<'q> {
    query: &'q MappedQuery,
    context: &'q QueryContext,
}

impl Ids for QueryIds<'_> {
    fn intern(&mut self, term: &Term<'_>) -> Result<TermId> {
        let id = self.context.intern(term);
        id.map_err(|error| Error::Words(error.to_string()))
    }

    fn blank_node(&mut self, label: &str) -> Result<TermId> {
        self.query.blank_node(label, self.context)
    }
}
