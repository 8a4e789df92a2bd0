//! GeoSPARQL's query rewrite extension: relations of places as properties, `?a geo:sfWithin ?b`
//! (GeoSPARQL 1.1, 11).
//!
//! ```text
//! ?a geo:sfWithin ?b
//!     { SELECT DISTINCT ?a ?b { { ?a geo:sfWithin ?b }                                        what is stated
//!                         UNION { { ?a geo:asWKT ?one } UNION { ?a geo:hasDefaultGeometry ?g . ?g geo:asWKT ?one } UNION ...
//!                                 { ?b geo:asWKT ?other } UNION ...
//!                                 FILTER(geof:sfWithin(?one, ?other)) } } }                   a join by place
//! ?a geo:sfWithin <b>
//!     ...                   UNION { ?a geo:asWKT ?one
//!                                   FILTER(geof:sfWithin(?one, "POLYGON((...))")) } UNION ...   by the index of places
//! ```
//!
//! A feature lies where its default geometry does (`geo:hasDefaultGeometry`, or
//! `geo:defaultGeometry`), as in the standard's rules; one that has none where its geometries do
//! (`geo:hasGeometry`). A geometry lies where its literals say. Only properties that the data have
//! are asked for, and where none of them has literals of geometries, the pattern is what it was.
//! Triples about one end that stand beside the pattern with a constant (`?a a :House`) are asked
//! for on each way, so that the join has no more to do than it must.
//!
//! A relation is not looked for where the predicate is a variable, and within paths but for
//! alternatives: `VALUES ?p { geo:sfWithin } ?a ?p ?b` finds what is stated only. All of it is
//! patterns and filters, so it reads what these read; a constant's literals are read while the
//! query is planned, within the same graphs.

use std::slice;

use orrery_geo::{Notation, Relation, Shape, from_text};
use orrery_storage::Permutation;
use orrery_term::{LiteralKind, Term, TermId};
use oxrdf::{Literal, NamedNode, Variable};
use spargebra::algebra::{Expression, Function, GraphPattern, PropertyPathExpression};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

use super::called::{GEO, has_calls, has_places, relation_named, relation_of};
use super::{Normaliser, PatternPlace, union_of};
use crate::algebra::{Group, Scope};
use crate::error::Result;

/// Properties of features whose values are the geometries that they are taken for.
const DEFAULT: [&str; 2] = ["hasDefaultGeometry", "defaultGeometry"];
/// The property of features whose values are geometries, where there is no default one.
const ANY: &str = "hasGeometry";
/// Literals of a constant that are put into the query; with more it is joined.
const LITERALS_MAX: usize = 8;
/// Bytes of such a literal: it stands in each way to the other end.
const LITERAL_BYTES_MAX: usize = 1 << 16;
/// Values of one property of a constant that are looked at for its literals.
const VALUES_MAX: u64 = 64;

/// A triple pattern whose predicate is a relation.
struct Call<'p> {
    relation: Relation,
    subject: &'p TermPattern,
    object: &'p TermPattern,
    /// Triples beside it that say more of one end, each with a constant.
    beside: Vec<TriplePattern>,
}

/// Which of the properties of geometries the data have.
#[derive(Default)]
struct Ways {
    written: Vec<NamedNode>,
    default: Vec<NamedNode>,
    any: Option<NamedNode>,
}

/// An end of a relation whose places are known when the query is planned.
type Known = Vec<(Literal, Shape)>;

/// A step of a path that is a relation, as the triple pattern that it stands for.
fn step(
    subject: &TermPattern,
    path: &PropertyPathExpression,
    object: &TermPattern,
) -> Option<TriplePattern> {
    match path {
        PropertyPathExpression::NamedNode(node) => relation_named(node).map(|_| TriplePattern {
            subject: subject.clone(),
            predicate: node.clone().into(),
            object: object.clone(),
        }),
        PropertyPathExpression::Reverse(inner)
            if matches!(**inner, PropertyPathExpression::NamedNode(_)) =>
        {
            step(object, inner, subject)
        }
        _ => None,
    }
}

impl Normaliser<'_> {
    /// The alternatives of a path, as a union, if one of them is a relation.
    pub(super) fn related_alternatives(
        &mut self,
        subject: &TermPattern,
        path: &PropertyPathExpression,
        object: &TermPattern,
        place: &PatternPlace,
    ) -> Result<Option<Group>> {
        let (mut open, mut alternatives) = (vec![path], Vec::new());
        while let Some(path) = open.pop() {
            match path {
                PropertyPathExpression::Alternative(left, right) => {
                    open.extend([&**right, &**left])
                }
                path => alternatives.push(path),
            }
        }
        let steps = alternatives.iter().map(|path| step(subject, path, object));
        let steps: Vec<Option<TriplePattern>> = steps.collect();
        if alternatives.len() == 1 || steps.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut branches = Vec::with_capacity(steps.len());
        for (path, step) in alternatives.into_iter().zip(steps) {
            branches.push(match step {
                Some(step) => self.basic(slice::from_ref(&step), place)?,
                None => {
                    let path = GraphPattern::Path {
                        subject: subject.clone(),
                        path: path.clone(),
                        object: object.clone(),
                    };
                    self.pattern(&path, place)?
                }
            });
        }
        Ok(Some(union_of(branches)))
    }

    /// Patterns of which some ask for relations.
    pub(super) fn with_relations(
        &mut self,
        patterns: &[TriplePattern],
        place: &PatternPlace,
    ) -> Result<Group> {
        let ways = self.ways()?;
        if ways.written.is_empty() {
            return self.basic_without_relations(patterns, place);
        }
        let (asked, others): (Vec<_>, Vec<_>) =
            patterns.iter().partition(|it| relation_of(it).is_some());
        let others: Vec<TriplePattern> = others.into_iter().cloned().collect();
        let mut group = self.basic_without_relations(&others, place)?;
        for pattern in asked {
            let Some(relation) = relation_of(pattern) else {
                continue;
            };
            let call = Call {
                relation,
                subject: &pattern.subject,
                object: &pattern.object,
                beside: beside(pattern, &others),
            };
            let found = self.related(&call, pattern, &ways, place)?;
            group = self.join(group, found);
        }
        Ok(group)
    }

    /// The properties that the data have.
    fn ways(&self) -> Result<Ways> {
        let known = |name: &str| -> Result<Option<NamedNode>> {
            let iri = format!("{GEO}{name}");
            let id = self.context.view().id_in_quads(&Term::iri(iri.as_str()))?;
            if id.is_none() {
                // What comes later may change that.
                self.context.note_bound_to_commit();
            }
            Ok(id.map(|_| NamedNode::new_unchecked(iri)))
        };
        let mut ways = Ways::default();
        for name in super::nearby::WRITTEN {
            ways.written.extend(known(name)?);
        }
        if !ways.written.is_empty() {
            for name in DEFAULT {
                ways.default.extend(known(name)?);
            }
            ways.any = known(ANY)?;
        }
        Ok(ways)
    }

    /// The pairs of one pattern: those that are stated, and those whose places lie so.
    fn related(
        &mut self,
        call: &Call<'_>,
        pattern: &TriplePattern,
        ways: &Ways,
        place: &PatternPlace,
    ) -> Result<Group> {
        let NamedNodePattern::NamedNode(predicate) = &pattern.predicate else {
            return self.basic_without_relations(slice::from_ref(pattern), place);
        };
        // As a path of one step it is what is stated.
        let stated = GraphPattern::Path {
            subject: call.subject.clone(),
            path: PropertyPathExpression::NamedNode(predicate.clone()),
            object: call.object.clone(),
        };
        let [one, other] = [
            self.places_known(call.subject, ways, place)?,
            self.places_known(call.object, ways, place)?,
        ];
        let lying = match (one, other) {
            (Some(one), Some(other)) => {
                let mut pairs = one
                    .iter()
                    .flat_map(|one| other.iter().map(move |other| (&one.1, &other.1)));
                pairs
                    .any(|(one, other)| call.relation.holds(one, other) == Some(true))
                    .then(GraphPattern::default)
            }
            (Some(known), None) => looked_up(call, call.object, &known, true, ways),
            (None, Some(known)) => looked_up(call, call.subject, &known, false, ways),
            (None, None) => Some(joined(call, ways)),
        };
        let Some(lying) = lying else {
            return self.pattern(&stated, place);
        };
        let mut variables = Vec::new();
        for end in [call.subject, call.object] {
            let variable = match end {
                TermPattern::Variable(variable) => variable.clone(),
                // As `Normaliser::slot` calls it.
                TermPattern::BlankNode(_) => Variable::new_unchecked(end.to_string()),
                _ => continue,
            };
            if !variables.contains(&variable) {
                variables.push(variable);
            }
        }
        let all = GraphPattern::Union {
            left: Box::new(stated),
            right: Box::new(lying),
        };
        let different = GraphPattern::Distinct {
            inner: Box::new(GraphPattern::Project {
                inner: Box::new(all),
                variables,
            }),
        };
        self.pattern(&different, place)
    }

    /// The places of an end that is a constant, if they are few and can be read now.
    fn places_known(
        &mut self,
        end: &TermPattern,
        ways: &Ways,
        place: &PatternPlace,
    ) -> Result<Option<Known>> {
        let term = match end {
            TermPattern::NamedNode(node) => Term::iri(node.as_str()),
            TermPattern::Literal(literal) => {
                // Whether it is a place decides what is planned.
                self.has_texts = true;
                let known = known_place(literal.value(), literal.datatype().as_str());
                return Ok(Some(known.into_iter().collect()));
            }
            // A triple lies nowhere.
            TermPattern::Triple(_) => return Ok(Some(Vec::new())),
            TermPattern::Variable(_) | TermPattern::BlankNode(_) => return Ok(None),
        };
        let is_one_of_many = matches!(place.scope, Scope::NamedVariable { .. });
        if is_one_of_many || self.has_mapped(&place.scope) {
            return Ok(None);
        }
        // What is read is of this state, and of who asks.
        self.has_texts = true;
        let Some(id) = self.context.view().id_in_quads(&term)? else {
            return Ok(Some(Vec::new()));
        };
        let mut geometries = vec![id];
        for properties in [ways.default.as_slice(), ways.any.as_slice()] {
            for property in properties {
                match self.values_of(id, property, &place.scope)? {
                    Some(values) => geometries.extend(values),
                    None => return Ok(None),
                }
            }
            if geometries.len() > 1 {
                break;
            }
        }
        let mut literals = Vec::new();
        for geometry in geometries {
            for written in &ways.written {
                match self.values_of(geometry, written, &place.scope)? {
                    Some(values) => literals.extend(values),
                    None => return Ok(None),
                }
            }
        }
        literals.sort_unstable();
        literals.dedup();
        if literals.len() > LITERALS_MAX {
            return Ok(None);
        }
        let mut known = Vec::with_capacity(literals.len());
        for literal in literals {
            let Term::Literal(literal) = self.context.term(literal)? else {
                continue;
            };
            let LiteralKind::Typed(datatype) = &literal.kind else {
                continue;
            };
            if literal.lexical.len() > LITERAL_BYTES_MAX {
                return Ok(None);
            }
            known.extend(known_place(&literal.lexical, datatype));
        }
        Ok(Some(known))
    }

    /// The values of a property in the graphs of a scope; none where there are too many to look at.
    fn values_of(
        &self,
        subject: TermId,
        property: &NamedNode,
        scope: &Scope,
    ) -> Result<Option<Vec<TermId>>> {
        let view = self.context.view();
        let property = view.id_in_quads(&Term::iri(property.as_str()))?;
        let (Some(property), Some(index)) = (property, view.index(Permutation::Spog)) else {
            return Ok(Some(Vec::new()));
        };
        let mut cursor = index.cursor();
        let rows = cursor.seek(&[subject, property])?;
        self.context
            .spend_planning(rows.len().clamp(1, VALUES_MAX))?;
        if rows.len() > VALUES_MAX {
            return Ok(None);
        }
        let (mut values, mut graphs) = (Vec::new(), Vec::new());
        cursor.read(rows, 2, &mut values)?;
        cursor.read(rows, 3, &mut graphs)?;
        let is_seen = |graph: TermId| match scope {
            Scope::Default => graph == TermId::DEFAULT_GRAPH,
            Scope::AllUnion => true,
            Scope::Union(graphs) => graphs.contains(&graph),
            Scope::Named(name) => graph == *name,
            Scope::NamedVariable { .. } => false,
        };
        let rows = values.into_iter().zip(graphs);
        let seen = rows.filter(|(_, graph)| is_seen(TermId::from_bits(*graph)));
        Ok(Some(
            seen.map(|(value, _)| TermId::from_bits(value)).collect(),
        ))
    }
}

fn known_place(text: &str, datatype: &str) -> Option<(Literal, Shape)> {
    let shape = from_text(text, Notation::of_datatype(datatype)?)?;
    let literal = Literal::new_typed_literal(text, NamedNode::new_unchecked(datatype));
    Some((literal, shape))
}

/// Triples that say of one end of a pattern that it stands with a constant.
fn beside(pattern: &TriplePattern, others: &[TriplePattern]) -> Vec<TriplePattern> {
    let is_open =
        |end: &TermPattern| matches!(end, TermPattern::Variable(_) | TermPattern::BlankNode(_));
    let ends = [&pattern.subject, &pattern.object];
    let is_end = |end: &TermPattern| is_open(end) && ends.contains(&end);
    let is_constant = |end: &TermPattern| matches!(end, TermPattern::NamedNode(_));
    let says_more = |it: &&TriplePattern| {
        let is_plain = matches!(it.predicate, NamedNodePattern::NamedNode(_))
            && !has_calls(slice::from_ref(*it))
            && !has_places(slice::from_ref(*it));
        let is_of_end = is_end(&it.subject) && is_constant(&it.object)
            || is_constant(&it.subject) && is_end(&it.object);
        is_plain && is_of_end
    };
    others.iter().filter(says_more).cloned().collect()
}

fn variable(name: &str) -> Variable {
    Variable::new_unchecked(format!(".{name}"))
}

/// The ways from an end to its literals, with a filter on each.
fn ways_of(
    call: &Call<'_>,
    end: &TermPattern,
    name: &str,
    ways: &Ways,
    filters: &[Expression],
) -> GraphPattern {
    let (literal, geometry) = (variable(name), variable(&format!("{name} geometry")));
    let triple = |subject: TermPattern, predicate: &NamedNode, object: &Variable| TriplePattern {
        subject,
        predicate: predicate.clone().into(),
        object: object.clone().into(),
    };
    let says = |it: &&TriplePattern| it.subject == *end || it.object == *end;
    let beside: Vec<TriplePattern> = call.beside.iter().filter(says).cloned().collect();
    let mut branches = Vec::new();
    for written in &ways.written {
        let mut branch = |has: Option<&NamedNode>| {
            let mut patterns = beside.clone();
            match has {
                None => patterns.push(triple(end.clone(), written, &literal)),
                Some(has) => {
                    patterns.push(triple(end.clone(), has, &geometry));
                    patterns.push(triple(geometry.clone().into(), written, &literal));
                }
            }
            let mut branch = GraphPattern::Bgp { patterns };
            if has.is_some() && has == ways.any.as_ref() {
                for default in &ways.default {
                    let has_default = GraphPattern::Bgp {
                        patterns: vec![triple(end.clone(), default, &variable("default"))],
                    };
                    branch = GraphPattern::Filter {
                        expr: Expression::Not(Box::new(Expression::Exists(Box::new(has_default)))),
                        inner: Box::new(branch),
                    };
                }
            }
            let filtered = filters.iter().map(|filter| GraphPattern::Filter {
                expr: filter.clone(),
                inner: Box::new(branch.clone()),
            });
            match filters.is_empty() {
                true => branches.push(branch),
                false => branches.extend(filtered),
            }
        };
        branch(None);
        let default = ways.default.iter();
        default.chain(&ways.any).for_each(|has| branch(Some(has)));
    }
    let union = branches
        .into_iter()
        .reduce(|left, right| GraphPattern::Union {
            left: Box::new(left),
            right: Box::new(right),
        });
    union.unwrap_or_default()
}

fn relation_between(call: &Call<'_>, arguments: [Expression; 2]) -> Expression {
    let name = call.relation.name();
    let function = NamedNode::new_unchecked(format!("{}{name}", orrery_geo::NAMESPACE));
    Expression::FunctionCall(Function::Custom(function), arguments.to_vec())
}

/// The ends whose places lie so to known ones; none where there are none.
fn looked_up(
    call: &Call<'_>,
    end: &TermPattern,
    known: &Known,
    is_known_first: bool,
    ways: &Ways,
) -> Option<GraphPattern> {
    let filters = known.iter().map(|(literal, _)| {
        let (known, open) = (literal.clone().into(), variable("one").into());
        relation_between(
            call,
            match is_known_first {
                true => [known, open],
                false => [open, known],
            },
        )
    });
    let filters: Vec<Expression> = filters.collect();
    (!filters.is_empty()).then(|| ways_of(call, end, "one", ways, &filters))
}

/// Both ends, by how their places lie to each other.
fn joined(call: &Call<'_>, ways: &Ways) -> GraphPattern {
    let both = GraphPattern::Join {
        left: Box::new(ways_of(call, call.subject, "one", ways, &[])),
        right: Box::new(ways_of(call, call.object, "other", ways, &[])),
    };
    let arguments = ["one", "other"].map(|name| Expression::from(variable(name)));
    GraphPattern::Filter {
        expr: relation_between(call, arguments),
        inner: Box::new(both),
    }
}
