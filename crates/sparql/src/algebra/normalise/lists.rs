//! Property functions over lists and containers, as in Jena.
//!
//! ```text
//! ?list list:member ?m             ?list rdf:rest*/rdf:first ?m
//! ?list list:length ?n             how many cells rdf:rest* leads to that have an rdf:first; 0 of rdf:nil
//! ?list list:index (?i ?m)         the length of the list less that of the cell in which ?m stands
//! ?c rdfs:member ?m                the triples of rdfs:member that are there, and those of rdf:_1, rdf:_2 and so on
//! ```
//!
//! Every cell is a list: that of its element and those behind it. So where the list is not known,
//! each has as many solutions as it has cells. A list that breaks off ends there, one without end
//! has each of its cells once, with the index at which its circle begins. All of it is paths,
//! patterns and groups, so it reads what these read, and costs and ends as they do; a length is
//! computed from the lists that the patterns before it have found, each once. Of a list of n cells
//! a length costs n steps, all indices together n² / 2.

use oxrdf::vocab::rdf;
use oxrdf::{Literal, NamedNode, Variable};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern,
    PropertyPathExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};

use super::called::{CONTAINER, RDFS_MEMBER, TEXTS, called, taken_list};
use super::text::jena_search;
use super::{Normaliser, PatternPlace};
use crate::algebra::{Group, Var};
use crate::error::{QueryError, Result};

/// The predicates of containers.
const NUMBERED: &str = r"^http://www\.w3\.org/1999/02/22-rdf-syntax-ns#_[1-9][0-9]*$";

/// A pattern that stands for a walk.
struct Call {
    of: TermPattern,
    asks: Asks,
}

enum Asks {
    /// A search, which has its subject in it.
    Texts(GraphPattern),
    Member(TermPattern),
    Length(TermPattern),
    Index(TermPattern, TermPattern),
    OfContainer(TermPattern),
}

impl Normaliser<'_> {
    /// Patterns of which some stand for a walk.
    pub(super) fn with_calls(
        &mut self,
        patterns: &[TriplePattern],
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut calls = Vec::new();
        let mut rest: Vec<TriplePattern> = Vec::with_capacity(patterns.len());
        let (walks, others): (Vec<_>, Vec<_>) =
            patterns.iter().partition(|it| called(it).is_some());
        rest.extend(others.into_iter().cloned());
        for pattern in walks {
            let asks = match called(pattern) {
                Some("member") => Asks::Member(pattern.object.clone()),
                Some("length") => Asks::Length(pattern.object.clone()),
                Some(TEXTS) => Asks::Texts(jena_search(pattern, &mut rest)?),
                Some(CONTAINER) => Asks::OfContainer(pattern.object.clone()),
                Some("index") => {
                    let [index, member] = taken_pair(&mut rest, &pattern.object)?;
                    Asks::Index(index, member)
                }
                other => {
                    let name = other.unwrap_or_default();
                    return Err(QueryError::unsupported(format!(
                        "list:{name}; there are list:member, list:index and list:length"
                    )));
                }
            };
            calls.push(Call {
                of: pattern.subject.clone(),
                asks,
            });
        }
        let mut group = self.basic(&rest, place)?;
        for call in calls {
            group = self.with_call(group, call, place)?;
        }
        Ok(group)
    }

    fn with_call(&mut self, group: Group, call: Call, place: &PatternPlace) -> Result<Group> {
        let Call { of, asks } = call;
        match asks {
            Asks::Texts(search) => self.joined(group, &search, place),
            Asks::Member(member) => {
                let first = PropertyPathExpression::NamedNode(rdf::FIRST.into_owned());
                let path = PropertyPathExpression::Sequence(Box::new(cells()), Box::new(first));
                self.joined(group, &walk(of, path, member), place)
            }
            Asks::OfContainer(member) => {
                let pattern = self.members_of_container(of, member);
                self.joined(group, &pattern, place)
            }
            Asks::Length(TermPattern::Variable(length)) if of != length.clone().into() => {
                self.with_length(group, &of, &length, place)
            }
            Asks::Length(length) => {
                let computed = self.own_variable("length");
                let group = self.with_length(group, &of, &computed, place)?;
                self.same(group, computed.into(), &length, place)
            }
            Asks::Index(index, member) => self.with_index(group, (of, index, member), place),
        }
    }

    fn joined(
        &mut self,
        group: Group,
        pattern: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        let right = self.pattern(pattern, place)?;
        Ok(self.join(group, right))
    }

    /// A variable that no text has.
    fn own_variable(&mut self, hint: &str) -> Variable {
        let var: Var = self.table.fresh(hint);
        let name = self.table.name(var).as_ref().to_owned();
        self.names.0.insert(name.clone(), var);
        Variable::new_unchecked(name)
    }

    /// Keeps solutions in which a value is what a term of the pattern is.
    fn same(
        &mut self,
        mut group: Group,
        value: Expression,
        term: &TermPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        let expected = match term {
            TermPattern::Literal(literal) => Expression::Literal(literal.clone()),
            TermPattern::Variable(_) | TermPattern::BlankNode(_) => {
                Expression::Variable(variable_of(term))
            }
            // No number.
            TermPattern::NamedNode(node) => Expression::NamedNode(node.clone()),
            TermPattern::Triple(_) => Expression::Literal(false.into()),
        };
        let is_same = Expression::SameTerm(Box::new(value), Box::new(expected));
        self.plain_filter(&mut group, is_same, place)?;
        Ok(group)
    }

    /// `list:length`, of the lists that the group has found if it has.
    fn with_length(
        &mut self,
        mut group: Group,
        of: &TermPattern,
        length: &Variable,
        place: &PatternPlace,
    ) -> Result<Group> {
        let pattern = self.length(of, length);
        let right = self.pattern(&pattern, place)?;
        let is_found = match of {
            TermPattern::Variable(_) | TermPattern::BlankNode(_) => {
                let list = self.variable(&variable_of(of));
                group.visible.contains(list)
            }
            _ => false,
        };
        if is_found && self.rewrites {
            group.for_each_of_rows(right);
            return Ok(group);
        }
        Ok(self.join(group, right))
    }

    /// The lengths of lists.
    fn length(&mut self, of: &TermPattern, length: &Variable) -> GraphPattern {
        let cell = self.own_variable("cell");
        let any = self.own_variable("element");
        let counted = self.own_variable("cells");
        let walked = GraphPattern::Join {
            left: Box::new(walk(of.clone(), cells(), cell.clone().into())),
            right: Box::new(step(
                cell.clone().into(),
                rdf::FIRST.into_owned(),
                any.into(),
            )),
        };
        let count = AggregateExpression::FunctionCall {
            name: AggregateFunction::Count,
            expr: cell.into(),
            distinct: true,
        };
        let list = match of {
            TermPattern::Variable(_) | TermPattern::BlankNode(_) => Some(variable_of(of)),
            _ => None,
        };
        let keys: Vec<Variable> = list.iter().cloned().collect();
        let mut grouped = GraphPattern::Group {
            inner: Box::new(walked),
            variables: keys.clone(),
            aggregates: vec![(counted.clone(), count)],
        };
        let nil = of == &TermPattern::NamedNode(rdf::NIL.into_owned());
        if list.is_none() && !nil {
            // Something that has no cell is no list.
            grouped = GraphPattern::Filter {
                expr: Expression::Greater(
                    Box::new(counted.clone().into()),
                    Box::new(Expression::Literal(0.into())),
                ),
                inner: Box::new(grouped),
            };
        }
        let mut columns = keys;
        columns.push(length.clone());
        let lengths = GraphPattern::Project {
            inner: Box::new(GraphPattern::Extend {
                inner: Box::new(grouped),
                variable: length.clone(),
                expression: counted.into(),
            }),
            variables: columns.clone(),
        };
        if list.is_none() {
            return lengths;
        }
        let nothing = GroundTerm::NamedNode(rdf::NIL.into_owned());
        let zero = GroundTerm::Literal(Literal::from(0));
        GraphPattern::Union {
            left: Box::new(lengths),
            right: Box::new(GraphPattern::Values {
                variables: columns,
                bindings: vec![vec![Some(nothing), Some(zero)]],
            }),
        }
    }

    /// `list:index (?index ?member)`.
    fn with_index(
        &mut self,
        group: Group,
        (of, index, member): (TermPattern, TermPattern, TermPattern),
        place: &PatternPlace,
    ) -> Result<Group> {
        let cell = self.own_variable("cell");
        let [all, from_cell] = ["length", "rest"].map(|hint| self.own_variable(hint));
        let walked = walk(of.clone(), cells(), cell.clone().into());
        let group = self.joined(group, &walked, place)?;
        let element = step(cell.clone().into(), rdf::FIRST.into_owned(), member);
        let group = self.joined(group, &element, place)?;
        let group = self.with_length(group, &of, &all, place)?;
        let mut group = self.with_length(group, &cell.into(), &from_cell, place)?;
        let difference = Expression::Subtract(Box::new(all.into()), Box::new(from_cell.into()));
        if let TermPattern::Variable(variable) = &index {
            let var = self.variable(variable);
            if !group.visible.contains(var) {
                let difference = self.value(&mut group, difference, place)?;
                group.bind(var, difference, &self.table);
                return Ok(group);
            }
        }
        self.same(group, difference, &index, place)
    }

    /// `?container rdfs:member ?member`: the numbered predicates are those of the data.
    fn members_of_container(&mut self, of: TermPattern, member: TermPattern) -> GraphPattern {
        let [subject, object, predicate] =
            ["subject", "object", "numbered"].map(|hint| self.own_variable(hint));
        let triple = |subject, predicate: NamedNodePattern, object| GraphPattern::Bgp {
            patterns: vec![TriplePattern {
                subject,
                predicate,
                object,
            }],
        };
        let all = triple(subject.into(), predicate.clone().into(), object.into());
        let different = GraphPattern::Distinct {
            inner: Box::new(GraphPattern::Project {
                inner: Box::new(all),
                variables: vec![predicate.clone()],
            }),
        };
        let name = Expression::FunctionCall(Function::Str, vec![predicate.clone().into()]);
        let pattern = Expression::Literal(Literal::new_simple_literal(NUMBERED));
        let numbered = GraphPattern::Filter {
            expr: Expression::FunctionCall(Function::Regex, vec![name, pattern]),
            inner: Box::new(different),
        };
        let own = NamedNode::new_unchecked(RDFS_MEMBER);
        // A path of one step is that pattern, and no call.
        let stated = walk(
            of.clone(),
            PropertyPathExpression::NamedNode(own),
            member.clone(),
        );
        GraphPattern::Union {
            left: Box::new(stated),
            right: Box::new(GraphPattern::Join {
                left: Box::new(numbered),
                right: Box::new(triple(of, predicate.into(), member)),
            }),
        }
    }
}

/// `rdf:rest*`
fn cells() -> PropertyPathExpression {
    let rest = PropertyPathExpression::NamedNode(rdf::REST.into_owned());
    PropertyPathExpression::ZeroOrMore(Box::new(rest))
}

fn walk(subject: TermPattern, path: PropertyPathExpression, object: TermPattern) -> GraphPattern {
    GraphPattern::Path {
        subject,
        path,
        object,
    }
}

fn step(subject: TermPattern, predicate: NamedNode, object: TermPattern) -> GraphPattern {
    GraphPattern::Bgp {
        patterns: vec![TriplePattern {
            subject,
            predicate: predicate.into(),
            object,
        }],
    }
}

/// The variable that a variable or a blank node of a pattern is.
fn variable_of(term: &TermPattern) -> Variable {
    match term {
        TermPattern::Variable(variable) => variable.clone(),
        // As `Normaliser::slot` calls it.
        other => Variable::new_unchecked(other.to_string()),
    }
}

/// Takes the triples of `(?index ?member)` out of the patterns.
fn taken_pair(patterns: &mut Vec<TriplePattern>, list: &TermPattern) -> Result<[TermPattern; 2]> {
    let pair = taken_list(patterns, list, 2).unwrap_or_default();
    <[TermPattern; 2]>::try_from(pair).map_err(|_| {
        QueryError::unsupported(
            "list:index without a pair behind it; write `?list list:index (?index ?member)`",
        )
    })
}
