//! The compilation of a mapping to rules: an existing table or query, typed columns, term makers.
//!
//! ```text
//! Mapping + Tables -> Rules: for each triples map its source, how its subject is made,
//!                            and (predicate, object, graph) of each triple of a row
//! ```
//!
//! What a mapping has wrong about the tables is found here, so rules are made whenever a mapping is
//! defined, and again of the state that a query reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;
use orrery_sql::{TableReader, foreign_definition};
use orrery_storage::table::{ColumnId, ColumnType, TableDefinition, Tables};
use orrery_term::vocabulary::rdf;
use orrery_term::{LanguageTags, Term};

use crate::error::{Error, Result};
use crate::lexical::datatype;
use crate::model::{
    Annotation, LogicalTable, Mapping, ObjectMap, ROW, TermMap, TermType, TermValue, TriplesMap,
};
use crate::template::{Piece, Template};

/// `rr:defaultGraph`.
const DEFAULT_GRAPH: &str = "http://www.w3.org/ns/r2rml#defaultGraph";
/// Rows that a query is expected to have.
const ROWS_OF_QUERY: f64 = 1e4;

/// All rules of a mapping.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) maps: Vec<MapRules>,
    /// How the mapping writes tags of languages.
    pub(crate) language_tags: LanguageTags,
}

/// Those of a triples map.
#[derive(Debug)]
pub(crate) struct MapRules {
    pub(crate) name: String,
    pub(crate) source: LogicalTable,
    pub(crate) subject: Maker<Column>,
    /// Whether no two rows have the same subject.
    pub(crate) is_unique: bool,
    /// Expected rows.
    pub(crate) rows: f64,
    pub(crate) rules: Vec<Rule>,
}

/// A triple of each row.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) predicate: Maker<Column>,
    pub(crate) object: Object,
    /// The default graph of the mapping if there is none.
    pub(crate) graph: Option<Maker<Column>>,
}

/// The object of a rule.
#[derive(Debug, Clone)]
pub(crate) enum Object {
    /// Of the row itself.
    Own(Maker<Column>),
    /// Of rows of another triples map's source.
    Joined {
        map: usize,
        maker: Maker<Column>,
        /// Columns of both that are equal.
        joins: Vec<(Column, Column)>,
    },
}

impl Object {
    /// How it is made, of its own row or of the other.
    pub(crate) fn maker(&self) -> &Maker<Column> {
        match self {
            Self::Own(maker) | Self::Joined { maker, .. } => maker,
        }
    }
}

/// A column of a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
}

/// How a term is made; columns are named, or numbered in what was selected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Maker<C> {
    pub(crate) value: MakerValue<C>,
    pub(crate) kind: TermKind,
    /// The triples map, for messages.
    pub(crate) triples_map: Arc<str>,
    /// Put before what is no absolute IRI.
    pub(crate) base: Arc<str>,
}

/// What it is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MakerValue<C> {
    Constant(Term<'static>),
    Column(C),
    Template(Template<C>),
}

/// What is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TermKind {
    Iri {
        /// Whether the template itself says that all of its IRIs are absolute.
        is_absolute: bool,
    },
    BlankNode,
    /// A plain literal if there is no datatype.
    Typed(Option<String>),
    Language(String),
}

impl<C> Maker<C> {
    /// The same with other columns.
    pub(crate) fn map<D>(&self, mut column: impl FnMut(&C) -> Result<D>) -> Result<Maker<D>> {
        Ok(Maker {
            value: match &self.value {
                MakerValue::Constant(term) => MakerValue::Constant(term.clone()),
                MakerValue::Column(name) => MakerValue::Column(column(name)?),
                MakerValue::Template(template) => MakerValue::Template(template.map(column)?),
            },
            kind: self.kind.clone(),
            triples_map: Arc::clone(&self.triples_map),
            base: Arc::clone(&self.base),
        })
    }

    /// The columns that it needs.
    pub(crate) fn columns(&self) -> Vec<&C> {
        match &self.value {
            MakerValue::Constant(_) => Vec::new(),
            MakerValue::Column(column) => vec![column],
            MakerValue::Template(template) => template.columns().collect(),
        }
    }
}

impl Maker<Column> {
    /// Whether rows that differ in its columns have different terms.
    pub(crate) fn is_injective(&self) -> bool {
        match (&self.value, &self.kind) {
            (MakerValue::Constant(_), _) => true,
            // A relative IRI and an absolute one may be the same.
            (MakerValue::Column(_), TermKind::Iri { .. }) => false,
            (MakerValue::Column(_), _) => true,
            (MakerValue::Template(template), TermKind::Iri { is_absolute }) => {
                *is_absolute && template.is_injective()
            }
            (MakerValue::Template(template), _) => template.columns().count() <= 1,
        }
    }
}

impl Rules {
    /// The rules of a mapping over some tables.
    pub(crate) async fn of(
        mapping: &Mapping,
        tables: &Arc<Tables>,
        reader: &TableReader,
    ) -> Result<Self> {
        let mut known: HashMap<LogicalTable, Arc<Source>> = HashMap::new();
        let mut sources = Vec::with_capacity(mapping.triples_maps.len());
        for map in &mapping.triples_maps {
            let source = match known.get(&map.table) {
                Some(source) => Arc::clone(source),
                None => {
                    let source = Source::of(&map.table, tables, reader).await;
                    let source = source.map_err(|error| error.at(&map.name, map.table.property()));
                    let source = Arc::new(source?);
                    known.insert(map.table.clone(), Arc::clone(&source));
                    source
                }
            };
            sources.push(source);
        }
        let base: Arc<str> = mapping.base.as_str().into();
        let mut language_tags = LanguageTags::default();
        let mut maps = Vec::with_capacity(mapping.triples_maps.len());
        for (map, source) in mapping.triples_maps.iter().zip(&sources) {
            let mut compiler = Compiler {
                triples_map: map.name.as_str().into(),
                base: Arc::clone(&base),
                language_tags: &mut language_tags,
            };
            maps.push(compiler.map(map, source, &mapping.triples_maps, &sources)?);
        }
        Ok(Self {
            maps,
            language_tags,
        })
    }
}

impl Rules {
    /// The graphs that constants name.
    pub(crate) fn named_graphs(&self) -> impl Iterator<Item = &str> {
        let rules = self.maps.iter().flat_map(|map| &map.rules);
        let graphs = rules.filter_map(|rule| rule.graph.as_ref());
        let names: BTreeSet<&str> = graphs
            .filter_map(|graph| match &graph.value {
                MakerValue::Constant(Term::Iri(iri)) => Some(iri.as_ref()),
                _ => None,
            })
            .collect();
        names.into_iter()
    }
}

impl LogicalTable {
    /// The property that says it.
    fn property(&self) -> &'static str {
        match self {
            Self::Table { .. } => "rr:tableName",
            Self::Query(_) => "rr:sqlQuery",
        }
    }
}

/// What is known of a logical table.
struct Source {
    columns: Vec<Column>,
    /// Of a table: columns that no two rows have in common.
    keys: Vec<Vec<String>>,
    rows: f64,
}

impl Source {
    async fn of(table: &LogicalTable, tables: &Arc<Tables>, reader: &TableReader) -> Result<Self> {
        if let LogicalTable::Table {
            schema,
            name,
            is_numbered,
        } = table
            && let Some(stored) = tables.table_named(schema, name)
        {
            let definition = stored.definition();
            let mut columns: Vec<Column> = definition
                .columns
                .iter()
                .map(|column| Column {
                    name: column.name.clone(),
                    column_type: column.column_type,
                })
                .collect();
            let mut keys = keys(definition);
            if *is_numbered {
                columns.push(Column {
                    name: ROW.to_owned(),
                    column_type: ColumnType::BigInt,
                });
                keys.push(vec![ROW.to_owned()]);
            }
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let rows = stored.rows() as f64;
            return Ok(Self {
                columns,
                keys,
                rows,
            });
        }
        if let LogicalTable::Table { schema, name, .. } = table
            && let Some(foreign) = foreign_definition(tables, schema, name)?
        {
            let columns = foreign.definition.columns.iter().map(|column| Column {
                name: column.name.clone(),
                column_type: column.column_type,
            });
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let rows = foreign.rows.map_or(ROWS_OF_QUERY, |rows| rows as f64);
            return Ok(Self {
                columns: columns.collect(),
                keys: keys(&foreign.definition),
                rows,
            });
        }
        let columns = match table {
            LogicalTable::Table { schema, name, .. } => {
                if tables.view_named(schema, name).is_none() {
                    let exact = tables.tables().map(|it| it.definition());
                    let mut exact = exact.filter(|it| it.name.eq_ignore_ascii_case(name));
                    let hint = match exact.next() {
                        Some(other) => {
                            format!("; there is \"{}\", which needs its quotes", other.name)
                        }
                        None => String::new(),
                    };
                    return Err(Error::Words(format!(
                        "there is no table {schema}.{name}{hint}"
                    )));
                }
                reader.columns_of_view(tables, schema, name).await?
            }
            LogicalTable::Query(query) => reader.columns(tables, query).await?,
        };
        let columns = columns.into_iter();
        let columns = columns.map(|(name, column_type)| Column { name, column_type });
        Ok(Self {
            columns: columns.collect(),
            keys: Vec::new(),
            rows: ROWS_OF_QUERY,
        })
    }

    fn column(&self, name: &str) -> Result<Column> {
        let mut found = self.columns.iter().filter(|column| column.name == name);
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column.clone()),
            (Some(_), Some(_)) => Err(Error::Words(format!("there are two columns \"{name}\""))),
            (None, _) => {
                let alike = self.columns.iter();
                let mut alike = alike.filter(|column| column.name.eq_ignore_ascii_case(name));
                let hint = match alike.next() {
                    Some(other) => format!("; there is \"{}\", which needs its quotes", other.name),
                    None => String::new(),
                };
                Err(Error::Words(format!("there is no column \"{name}\"{hint}")))
            }
        }
    }
}

/// What tells the rows of a table apart, by names.
fn keys(definition: &TableDefinition) -> Vec<Vec<String>> {
    let column = |id: &ColumnId| definition.column(*id);
    let names = |ids: &[ColumnId]| -> Option<Vec<String>> {
        let names = ids.iter().map(|id| Some(column(id)?.name.clone()));
        names.collect()
    };
    let primary = definition.primary_key.iter().map(|key| &key.columns);
    let unique = definition.indexes.iter().filter(|index| {
        let columns = &mut index.columns.iter();
        index.is_unique && columns.all(|id| column(id).is_some_and(|it| !it.is_nullable))
    });
    let all = primary.chain(unique.map(|index| &index.columns));
    all.filter_map(|ids| names(ids)).collect()
}

/// Makes rules of one triples map.
struct Compiler<'t> {
    triples_map: Arc<str>,
    base: Arc<str>,
    language_tags: &'t mut LanguageTags,
}

impl Compiler<'_> {
    fn map(
        &mut self,
        map: &TriplesMap,
        source: &Source,
        all: &[TriplesMap],
        sources: &[Arc<Source>],
    ) -> Result<MapRules> {
        let subject = self.maker(&map.subject, source, "rr:subjectMap")?;
        let own: Vec<&Column> = subject.columns();
        let covers = |key: &Vec<String>| key.iter().all(|it| own.iter().any(|own| own.name == *it));
        let is_unique = subject.is_injective() && source.keys.iter().any(covers);
        let of_map = self.graphs(&map.graphs, source)?;
        let mut rules = Vec::new();
        for class in &map.classes {
            let predicate = self.constant(Term::iri(rdf::TYPE));
            let object = self.constant(Term::iri(class.clone()));
            for graph in graphs_or_default(&of_map) {
                rules.push(Rule {
                    predicate: predicate.clone(),
                    object: Object::Own(object.clone()),
                    graph,
                });
            }
        }
        for properties in &map.properties {
            let own = self.graphs(&properties.graphs, source)?;
            let graphs: Vec<_> = of_map.iter().chain(&own).cloned().collect();
            for predicate in &properties.predicates {
                let predicate = self.maker(predicate, source, "rr:predicateMap")?;
                for object in &properties.objects {
                    let object = self.object(object, source, all, sources)?;
                    for graph in graphs_or_default(&graphs) {
                        rules.push(Rule {
                            predicate: predicate.clone(),
                            object: object.clone(),
                            graph,
                        });
                    }
                }
            }
        }
        Ok(MapRules {
            name: map.name.clone(),
            source: map.table.clone(),
            subject,
            is_unique,
            rows: source.rows,
            rules,
        })
    }

    fn graphs(
        &mut self,
        graphs: &[TermMap],
        source: &Source,
    ) -> Result<Vec<Option<Maker<Column>>>> {
        let graphs = graphs.iter().map(|graph| {
            let is_default = matches!(&graph.value, TermValue::Constant(Term::Iri(iri))
                if *iri == DEFAULT_GRAPH);
            match is_default {
                true => Ok(None),
                false => Ok(Some(self.maker(graph, source, "rr:graphMap")?)),
            }
        });
        graphs.collect()
    }

    fn object(
        &mut self,
        object: &ObjectMap,
        source: &Source,
        all: &[TriplesMap],
        sources: &[Arc<Source>],
    ) -> Result<Object> {
        match object {
            ObjectMap::Term(map) => Ok(Object::Own(self.maker(map, source, "rr:objectMap")?)),
            ObjectMap::Parent { triples_map, joins } => {
                let parent = &sources[*triples_map];
                let subject = &all[*triples_map].subject;
                if joins.is_empty() {
                    let maker = self.maker(subject, source, "rr:parentTriplesMap")?;
                    return Ok(Object::Own(maker));
                }
                let name = Arc::clone(&self.triples_map);
                let at = |property: &'static str| {
                    let name = Arc::clone(&name);
                    move |error: Error| error.at(&name, property)
                };
                let joins = joins.iter().map(|(child, theirs)| {
                    Ok((
                        source.column(child).map_err(at("rr:child"))?,
                        parent.column(theirs).map_err(at("rr:parent"))?,
                    ))
                });
                Ok(Object::Joined {
                    map: *triples_map,
                    joins: joins.collect::<Result<_>>()?,
                    maker: self.maker(subject, parent, "rr:parentTriplesMap")?,
                })
            }
        }
    }

    fn constant(&self, term: Term<'static>) -> Maker<Column> {
        Maker {
            value: MakerValue::Constant(term),
            kind: TermKind::Iri { is_absolute: true },
            triples_map: Arc::clone(&self.triples_map),
            base: Arc::clone(&self.base),
        }
    }

    fn maker(&mut self, map: &TermMap, source: &Source, property: &str) -> Result<Maker<Column>> {
        let at = |error: Error| error.at(&self.triples_map, property);
        let value = match &map.value {
            TermValue::Constant(term) => {
                let mut term = term.clone();
                if let Term::Literal(literal) = &mut term
                    && let Some(tag) = literal.language_tag().map(str::to_owned)
                {
                    self.language_tags.note(&tag);
                    term = Term::language(
                        literal.lexical.clone().into_owned(),
                        tag.to_ascii_lowercase(),
                    );
                }
                return Ok(self.constant(term));
            }
            TermValue::Column(name) => MakerValue::Column(source.column(name).map_err(at)?),
            TermValue::Template(template) => {
                let template = template.map(|name| source.column(name));
                MakerValue::Template(template.map_err(at)?)
            }
        };
        let (value, kind) = match (&map.term_type, value) {
            (TermType::Iri, MakerValue::Template(template)) => {
                let (template, is_absolute) = resolved(template, &self.base);
                (
                    MakerValue::Template(template),
                    TermKind::Iri { is_absolute },
                )
            }
            (TermType::Iri, value) => (value, TermKind::Iri { is_absolute: false }),
            (TermType::BlankNode, value) => (value, TermKind::BlankNode),
            (TermType::Literal(Annotation::Natural), value) => {
                let natural = match &value {
                    MakerValue::Column(column) => datatype(column.column_type),
                    MakerValue::Constant(_) | MakerValue::Template(_) => None,
                };
                (value, TermKind::Typed(natural.map(str::to_owned)))
            }
            (TermType::Literal(Annotation::Datatype(iri)), value) => {
                (value, TermKind::Typed(Some(iri.clone())))
            }
            (TermType::Literal(Annotation::Language(tag)), value) => {
                self.language_tags.note(tag);
                (value, TermKind::Language(tag.to_ascii_lowercase()))
            }
        };
        Ok(Maker {
            value,
            kind,
            triples_map: Arc::clone(&self.triples_map),
            base: Arc::clone(&self.base),
        })
    }
}

fn graphs_or_default(graphs: &[Option<Maker<Column>>]) -> Vec<Option<Maker<Column>>> {
    match graphs.is_empty() {
        true => vec![None],
        false => graphs.to_vec(),
    }
}

/// A template with the base before it if none of its IRIs is absolute, and whether they all are
/// then.
fn resolved(mut template: Template<Column>, base: &str) -> (Template<Column>, bool) {
    let text = match template.pieces.first() {
        Some(Piece::Text(text)) => text.as_str(),
        _ => "",
    };
    let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|char: char| char.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
    });
    if has_scheme {
        return (template, true);
    }
    // Encoded values have no colon.
    let has_colon = template
        .pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Text(text) if text.contains(':')));
    if has_colon || base.is_empty() {
        return (template, false);
    }
    match template.pieces.first_mut() {
        Some(Piece::Text(text)) => text.insert_str(0, base),
        _ => template.pieces.insert(0, Piece::Text(base.to_owned())),
    }
    (template, true)
}
