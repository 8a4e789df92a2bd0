//! Templates of `CONSTRUCT` and of updates, which make triples and quads from solutions.
//!
//! A template is compiled against the columns of the solutions; instances are made of ids. Blank
//! nodes of the template are new for each solution, the same ones in all its triples. A triple with
//! an unbound part, or with a term where it may not stand, is left out (SPARQL 1.2, 16.2.1).

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::UInt64Type;
use orrery_operators::context::QueryContext;
use orrery_syntax::template_graph;
use orrery_term::{Term, TermId, TermKind, Triple};
use spargebra::term::{
    GraphNamePattern, NamedNodePattern, QuadPattern, TermPattern, TriplePattern, Variable,
};

use super::literal_from_oxrdf;
use crate::error::Result;

/// A position of a template.
#[derive(Clone, Debug)]
enum Slot {
    Constant(TermId),
    /// The variable's column; none if nothing binds it.
    Column(Option<usize>),
    /// A blank node, new for each solution, by its number in the template.
    BlankNode(usize),
    /// A triple term that is not the same for all solutions.
    Triple(Box<[Slot; 3]>),
}

/// The template of a `CONSTRUCT`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template {
    triples: Vec<[Slot; 3]>,
    /// The graph of each triple; empty if all are of the default graph.
    graphs: Vec<Slot>,
    blank_nodes: usize,
}

/// A template of an update.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuadTemplate {
    /// Each triple and its graph.
    quads: Vec<([Slot; 3], Slot)>,
    blank_nodes: usize,
}

/// Calls `visit` for each variable of a quad of a template, with repetitions.
pub(crate) fn for_each_quad_variable(quad: &QuadPattern, visit: &mut dyn FnMut(&Variable)) {
    if let GraphNamePattern::Variable(variable) = &quad.graph_name {
        visit(variable);
    }
    let triple = triple_pattern(quad);
    for_each_template_variable(std::slice::from_ref(&triple), &mut |variable| {
        visit(variable)
    });
}

fn triple_pattern(quad: &QuadPattern) -> TriplePattern {
    TriplePattern {
        subject: quad.subject.clone(),
        predicate: quad.predicate.clone(),
        object: quad.object.clone(),
    }
}

/// Calls `visit` for each variable of a template, with repetitions.
pub(crate) fn for_each_template_variable<'t>(
    template: &'t [TriplePattern],
    visit: &mut dyn FnMut(&'t Variable),
) {
    for triple in template {
        if let NamedNodePattern::Variable(variable) = &triple.predicate {
            visit(variable);
        }
        for term in [&triple.subject, &triple.object] {
            match term {
                TermPattern::Variable(variable) => visit(variable),
                TermPattern::Triple(inner) => {
                    for_each_template_variable(std::slice::from_ref(inner), visit);
                }
                TermPattern::NamedNode(_) | TermPattern::Literal(_) | TermPattern::BlankNode(_) => {
                }
            }
        }
    }
}

/// Compiles a template.
struct Compiler<'t, C> {
    context: &'t QueryContext,
    column: C,
    blank_nodes: HashMap<&'t str, usize>,
    /// The IRIs of the triples before: the subject, mostly, of all of them. To look one up that the
    /// dictionary has not takes as long as to match a pattern.
    known: Vec<(&'t str, TermId)>,
    ids: KnownIds<'t>,
}

/// Tells of an IRI the id, or that it has none, if that is known.
pub(crate) type KnownIds<'k> = &'k dyn Fn(&str) -> Option<Option<TermId>>;

/// IRIs of a template that are remembered.
const KNOWN_MAX: usize = 16;

impl<'t, C: Fn(&Variable) -> Option<usize>> Compiler<'t, C> {
    fn triple(&mut self, triple: &'t TriplePattern) -> Result<[Slot; 3]> {
        let predicate = match &triple.predicate {
            NamedNodePattern::NamedNode(node) => self.iri(node.as_str())?,
            NamedNodePattern::Variable(variable) => Slot::Column((self.column)(variable)),
        };
        Ok([
            self.slot(&triple.subject)?,
            predicate,
            self.slot(&triple.object)?,
        ])
    }

    fn slot(&mut self, term: &'t TermPattern) -> Result<Slot> {
        Ok(match term {
            TermPattern::Variable(variable) => Slot::Column((self.column)(variable)),
            TermPattern::NamedNode(node) => self.iri(node.as_str())?,
            TermPattern::Literal(literal) => self.constant(&literal_from_oxrdf(literal))?,
            TermPattern::BlankNode(node) => {
                let next = self.blank_nodes.len();
                Slot::BlankNode(*self.blank_nodes.entry(node.as_str()).or_insert(next))
            }
            TermPattern::Triple(triple) => match self.triple(triple)? {
                [Slot::Constant(s), Slot::Constant(p), Slot::Constant(o)] => {
                    let id = triple_term(self.context, [s, p, o])?;
                    // What never makes a triple term is like a variable that nothing binds.
                    id.map_or(Slot::Column(None), Slot::Constant)
                }
                parts => Slot::Triple(Box::new(parts)),
            },
        })
    }

    fn iri(&mut self, iri: &'t str) -> Result<Slot> {
        let known = self.known.iter().find(|(known, _)| *known == iri);
        if let Some((_, id)) = known {
            return Ok(Slot::Constant(*id));
        }
        let id = match (self.ids)(iri) {
            Some(Some(id)) => id,
            Some(None) => self.context.intern_own(&Term::iri(iri))?,
            None => self.context.intern(&Term::iri(iri))?,
        };
        if self.known.len() < KNOWN_MAX {
            self.known.push((iri, id));
        }
        Ok(Slot::Constant(id))
    }

    fn constant(&self, term: &Term<'_>) -> Result<Slot> {
        Ok(Slot::Constant(self.context.intern(term)?))
    }
}

impl Template {
    /// Compiles a template; `column` tells where the solutions have a variable.
    pub(crate) fn compile(
        context: &QueryContext,
        template: &[TriplePattern],
        column: impl Fn(&Variable) -> Option<usize>,
    ) -> Result<Self> {
        Self::compile_with(context, template, column, &|_| None)
    }

    /// The same where the ids of some IRIs are known, or that they have none in the state that the
    /// query reads.
    pub(crate) fn compile_with(
        context: &QueryContext,
        template: &[TriplePattern],
        column: impl Fn(&Variable) -> Option<usize>,
        ids: KnownIds<'_>,
    ) -> Result<Self> {
        let mut compiler = Compiler {
            context,
            column,
            blank_nodes: HashMap::new(),
            known: Vec::new(),
            ids,
        };
        let mut triples = Vec::with_capacity(template.len());
        let (mut graphs, mut graph) = (Vec::new(), None);
        for member in template {
            match template_graph(member) {
                Some(name) => {
                    let slot = name.map(|name| compiler.slot(name)).transpose()?;
                    let slot = slot.unwrap_or(Slot::Constant(TermId::DEFAULT_GRAPH));
                    // Those before the first mark are of the default graph.
                    graphs.resize(triples.len(), Slot::Constant(TermId::DEFAULT_GRAPH));
                    graph = Some(slot);
                }
                None => {
                    triples.push(compiler.triple(member)?);
                    graphs.extend(graph.clone());
                }
            }
        }
        Ok(Self {
            triples,
            graphs,
            blank_nodes: compiler.blank_nodes.len(),
        })
    }

    /// Whether it gives quads of other graphs than the default one.
    pub(crate) fn has_graphs(&self) -> bool {
        !self.graphs.is_empty()
    }

    /// How many triples or quads it has.
    pub(super) fn len(&self) -> usize {
        self.triples.len()
    }

    /// The quads of all solutions of a batch, with repetitions.
    pub(crate) fn quads(
        &self,
        batch: &RecordBatch,
        context: &QueryContext,
    ) -> Result<Vec<[TermId; 4]>> {
        let mut row = Row::new(batch, context, self.blank_nodes);
        let mut quads = Vec::with_capacity(batch.num_rows() * self.triples.len());
        for number in 0..batch.num_rows() {
            row.go_to(number);
            for (slots, graph) in self.triples.iter().zip(&self.graphs) {
                quads.extend(row.quad(slots, graph)?);
            }
        }
        Ok(quads)
    }

    /// The triples of all solutions of a batch, with repetitions.
    pub(crate) fn instances(
        &self,
        batch: &RecordBatch,
        context: &QueryContext,
    ) -> Result<Vec<[TermId; 3]>> {
        let mut row = Row::new(batch, context, self.blank_nodes);
        let mut triples = Vec::with_capacity(batch.num_rows() * self.triples.len());
        for number in 0..batch.num_rows() {
            row.go_to(number);
            for slots in &self.triples {
                if let Some(triple) = row.triple(slots)?
                    && is_kind(context, triple[0], true)?
                    && is_kind(context, triple[1], false)?
                {
                    triples.push(triple);
                }
            }
        }
        Ok(triples)
    }
}

impl QuadTemplate {
    /// Compiles a template; `column` tells where the solutions have a variable.
    pub(crate) fn compile(
        context: &QueryContext,
        template: &[QuadPattern],
        column: impl Fn(&Variable) -> Option<usize>,
    ) -> Result<Self> {
        let triples: Vec<TriplePattern> = template.iter().map(triple_pattern).collect();
        let mut compiler = Compiler {
            context,
            column,
            blank_nodes: HashMap::new(),
            known: Vec::new(),
            ids: &|_| None,
        };
        let mut quads = Vec::with_capacity(template.len());
        for (quad, triple) in template.iter().zip(&triples) {
            let graph = match &quad.graph_name {
                GraphNamePattern::DefaultGraph => Slot::Constant(TermId::DEFAULT_GRAPH),
                GraphNamePattern::NamedNode(node) => {
                    compiler.constant(&Term::iri(node.as_str()))?
                }
                GraphNamePattern::Variable(variable) => Slot::Column((compiler.column)(variable)),
            };
            quads.push((compiler.triple(triple)?, graph));
        }
        Ok(Self {
            quads,
            blank_nodes: compiler.blank_nodes.len(),
        })
    }

    /// Gives the quads of all solutions of a batch, with repetitions.
    pub(crate) fn for_each(
        &self,
        batch: &RecordBatch,
        context: &QueryContext,
        mut visit: impl FnMut([TermId; 4]) -> Result<()>,
    ) -> Result<()> {
        if self.quads.is_empty() {
            return Ok(());
        }
        let mut row = Row::new(batch, context, self.blank_nodes);
        for number in 0..batch.num_rows() {
            row.go_to(number);
            for (slots, graph) in &self.quads {
                if let Some(quad) = row.quad(slots, graph)? {
                    visit(quad)?;
                }
            }
        }
        Ok(())
    }
}

/// A solution for which a template is filled in.
struct Row<'a> {
    context: &'a QueryContext,
    columns: Vec<&'a UInt64Array>,
    number: usize,
    blank_nodes: Vec<TermId>,
    /// Triple terms made for this batch, by their parts.
    triple_terms: HashMap<[TermId; 3], Option<TermId>>,
}

impl<'a> Row<'a> {
    fn new(batch: &'a RecordBatch, context: &'a QueryContext, blank_nodes: usize) -> Self {
        let columns = batch.columns().iter();
        Self {
            context,
            columns: columns.map(|c| c.as_primitive::<UInt64Type>()).collect(),
            number: 0,
            blank_nodes: vec![TermId::MIN; blank_nodes],
            triple_terms: HashMap::new(),
        }
    }

    /// The solution of this number, with blank nodes of its own.
    fn go_to(&mut self, number: usize) {
        self.number = number;
        for node in &mut self.blank_nodes {
            *node = TermId::blank_node(self.context.fresh_blank_node());
        }
    }

    fn triple(&mut self, [subject, predicate, object]: &[Slot; 3]) -> Result<Option<[TermId; 3]>> {
        let parts = (
            self.term(subject)?,
            self.term(predicate)?,
            self.term(object)?,
        );
        Ok(match parts {
            (Some(subject), Some(predicate), Some(object)) => Some([subject, predicate, object]),
            _ => None,
        })
    }

    /// The quad, if all of its parts are there and may stand where they do.
    fn quad(&mut self, slots: &[Slot; 3], graph: &Slot) -> Result<Option<[TermId; 4]>> {
        let (Some([subject, predicate, object]), Some(graph)) =
            (self.triple(slots)?, self.term(graph)?)
        else {
            return Ok(None);
        };
        let fits = is_kind(self.context, subject, true)?
            && is_kind(self.context, predicate, false)?
            && (graph == TermId::DEFAULT_GRAPH || is_kind(self.context, graph, true)?);
        Ok(fits.then_some([subject, predicate, object, graph]))
    }

    fn term(&mut self, slot: &Slot) -> Result<Option<TermId>> {
        Ok(match slot {
            Slot::Constant(id) => Some(*id),
            Slot::BlankNode(number) => Some(self.blank_nodes[*number]),
            Slot::Column(None) => None,
            Slot::Column(Some(at)) => {
                let column = self.columns[*at];
                let is_bound = column.is_valid(self.number);
                is_bound.then(|| TermId::from_bits(column.value(self.number)))
            }
            Slot::Triple(slots) => {
                let Some(parts) = self.triple(slots)? else {
                    return Ok(None);
                };
                if let Some(&id) = self.triple_terms.get(&parts) {
                    return Ok(id);
                }
                let id = triple_term(self.context, parts)?;
                self.triple_terms.insert(parts, id);
                id
            }
        })
    }
}

/// The triple term of these parts, if they may stand where they do.
fn triple_term(context: &QueryContext, parts: [TermId; 3]) -> Result<Option<TermId>> {
    let [subject, predicate, object] = parts.map(|part| context.term(part));
    Ok(match Triple::new(subject?, predicate?, object?) {
        Ok(triple) => Some(context.intern(&triple.into())?),
        Err(_) => None,
    })
}

/// Whether an id is an IRI, or also a blank node.
fn is_kind(context: &QueryContext, id: TermId, or_blank: bool) -> Result<bool> {
    Ok(match id.kind() {
        TermKind::Iri => true,
        TermKind::BlankNode => or_blank,
        TermKind::QueryLocal | TermKind::Delta => matches!(context.term(id)?, Term::Iri(_)),
        _ => false,
    })
}
