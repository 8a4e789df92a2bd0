//! Groups of patterns: what stands between `{` and `}` of a `WHERE`.

use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{GroundTerm, GroundTriple, Variable};

use super::literal::{is_iri, is_literal, rdf_type};
use super::triples::{Elements, Place, begins_triples, join};
use super::{Aggregates, Parsed, Parser};
use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::names::VariableId;
use crate::token::TokenKind;
use crate::word::Keyword;

/// A group in the making.
struct Group {
    pattern: GraphPattern,
    /// All its filters, which are for the whole group.
    filter: Option<Expression>,
    /// What was in scope before it.
    mark: usize,
}

impl Group {
    fn join(&mut self, other: GraphPattern) {
        self.pattern = join(std::mem::take(&mut self.pattern), other);
    }

    fn filter(&mut self, condition: Expression) {
        self.filter = Some(match self.filter.take() {
            Some(before) => Expression::And(Box::new(before), Box::new(condition)),
            None => condition,
        });
    }
}

impl Parser<'_, '_> {
    /// A group with its filters.
    pub(super) fn group(&mut self) -> Parsed<GraphPattern> {
        let (pattern, filter) = self.group_and_filter()?;
        Ok(match filter {
            Some(expr) => GraphPattern::Filter {
                expr,
                inner: Box::new(pattern),
            },
            None => pattern,
        })
    }

    /// A group, and apart from it its filters, which of an `OPTIONAL` are the condition that it is
    /// joined by.
    fn group_and_filter(&mut self) -> Parsed<(GraphPattern, Option<Expression>)> {
        if !self.at(TokenKind::LeftBrace) {
            let previous = self.previous;
            return Err(self.no_bracket("{", previous));
        }
        self.open(TokenKind::LeftBrace, "{")?;
        self.begin_labels();
        let inner = self.with_aggregates(Aggregates::No, |parser| {
            match parser.at_keyword(Keyword::Select) {
                true => Ok((parser.sub_select()?, None)),
                false => parser.elements(),
            }
        })?;
        self.begin_labels();
        self.close(TokenKind::RightBrace)?;
        Ok(inner)
    }

    /// A basic graph pattern ends here: the labels of what comes now are those of another.
    pub(super) fn begin_labels(&mut self) {
        self.label_groups += 1;
        self.label_group = self.label_groups;
    }

    fn elements(&mut self) -> Parsed<(GraphPattern, Option<Expression>)> {
        let mut group = Group {
            pattern: GraphPattern::default(),
            filter: None,
            mark: self.scope.mark(),
        };
        let depth = self.opened.len();
        let mut may_be_triples = true;
        loop {
            let element = match self.at_thing(Thing::Term, begins_triples) && may_be_triples {
                true => self.triples_block(&mut group).map(|()| false),
                false => self.element(&mut group),
            };
            match element {
                // Triples follow each other with a dot only, which their rule takes.
                Ok(goes_on) => may_be_triples = goes_on,
                Err(failure) => {
                    self.recover_in_group(failure, depth)?;
                    may_be_triples = true;
                }
            }
            let is_at_element = self.at_element();
            if self.at(TokenKind::RightBrace) || self.token.kind == TokenKind::End {
                return Ok((group.pattern, group.filter));
            }
            if !may_be_triples && !is_at_element {
                let failure = self.no_element();
                self.recover_in_group(failure, depth)?;
                may_be_triples = true;
            }
        }
    }

    fn triples_block(&mut self, group: &mut Group) -> Parsed<()> {
        let mut elements = Elements::default();
        let result = self.triples(Place::Pattern, &mut elements);
        // Behind an error, too: a tolerant reader keeps what it read. For a strict one that error
        // is what counts.
        if !elements.is_empty() && (result.is_ok() || self.is_tolerant) {
            // Counted before they are made: what is too deep is never there.
            for _ in 0..=elements.joins() {
                self.deeper()?;
            }
            group.join(elements.into_pattern());
        }
        result
    }

    /// Whether something else than triples begins here.
    fn at_element(&mut self) -> bool {
        let keywords = [
            Keyword::Optional,
            Keyword::Minus,
            Keyword::Lateral,
            Keyword::Graph,
            Keyword::Service,
            Keyword::Filter,
            Keyword::Bind,
            Keyword::Values,
        ];
        // All of them are asked for, for all may stand here.
        let mut is_keyword = false;
        for keyword in keywords {
            is_keyword |= self.at_keyword(keyword);
        }
        self.at(TokenKind::LeftBrace) || is_keyword
    }

    /// One element that is no triples, and the dot behind it. Whether triples may follow.
    fn element(&mut self, group: &mut Group) -> Parsed<bool> {
        match self.token.kind {
            TokenKind::LeftBrace => {
                self.deeper()?;
                let union = self.union()?;
                group.join(union);
            }
            TokenKind::Keyword(keyword) => match keyword {
                Keyword::Optional => {
                    self.deeper()?;
                    self.bump();
                    let (right, expression) = self.group_and_filter()?;
                    group.pattern = GraphPattern::LeftJoin {
                        left: Box::new(std::mem::take(&mut group.pattern)),
                        right: Box::new(right),
                        expression,
                    };
                }
                Keyword::Minus => {
                    self.deeper()?;
                    self.bump();
                    let mark = self.scope.mark();
                    let right = self.group()?;
                    self.scope.forget(mark);
                    group.pattern = GraphPattern::Minus {
                        left: Box::new(std::mem::take(&mut group.pattern)),
                        right: Box::new(right),
                    };
                }
                Keyword::Lateral => {
                    self.deeper()?;
                    self.bump();
                    let right = self.lateral_group(group.mark)?;
                    group.pattern = GraphPattern::Lateral {
                        left: Box::new(std::mem::take(&mut group.pattern)),
                        right: Box::new(right),
                    };
                }
                Keyword::Graph => {
                    self.deeper()?;
                    self.bump();
                    if self.token.kind == TokenKind::Variable {
                        let token = self.token;
                        let id = self.names.id(self.variable_name(token));
                        self.scope.see(id);
                    }
                    let name = match self.variable_or_iri() {
                        Err(failure) if self.token.kind == TokenKind::LeftBrace => {
                            self.report(failure)?;
                            None
                        }
                        name => Some(name?),
                    };
                    let inner = self.group()?;
                    group.join(match name {
                        Some(name) => GraphPattern::Graph {
                            name,
                            inner: Box::new(inner),
                        },
                        None => inner,
                    });
                }
                Keyword::Service => {
                    self.deeper()?;
                    self.bump();
                    let silent = self.eat_keyword(Keyword::Silent);
                    let name = self.variable_or_iri()?;
                    let inner = Box::new(self.group()?);
                    group.join(GraphPattern::Service {
                        name,
                        inner,
                        silent,
                    });
                }
                Keyword::Filter => {
                    self.deeper()?;
                    self.bump();
                    let free = self.free.len();
                    let condition = self.constraint(Keyword::Filter)?;
                    self.free.truncate(free);
                    group.filter(condition);
                }
                Keyword::Bind => {
                    let depth = self.opened.len();
                    match self.bind(group) {
                        Err(failure) if self.opened.len() > depth => {
                            self.recover_behind_bracket(failure, depth)?;
                        }
                        result => result?,
                    }
                }
                Keyword::Values => {
                    self.deeper()?;
                    self.bump();
                    let values = self.data_block()?;
                    group.join(values);
                }
                _ => return self.no_element_or_end(),
            },
            _ => return self.no_element_or_end(),
        }
        self.eat(TokenKind::Dot);
        Ok(true)
    }

    /// The group may end here, or something stands here that no element begins with.
    fn no_element_or_end(&mut self) -> Parsed<bool> {
        self.at_element();
        match self.at(TokenKind::RightBrace) || self.token.kind == TokenKind::End {
            true => Ok(true),
            false => Err(self.no_element()),
        }
    }

    fn union(&mut self) -> Parsed<GraphPattern> {
        let mut pattern = self.group()?;
        while self.eat_keyword(Keyword::Union) {
            self.deeper()?;
            let depth = self.opened.len();
            match self.group() {
                Ok(right) => {
                    pattern = GraphPattern::Union {
                        left: Box::new(pattern),
                        right: Box::new(right),
                    };
                }
                Err(failure) => self.recover_in_group(failure, depth)?,
            }
        }
        Ok(pattern)
    }

    fn bind(&mut self, group: &mut Group) -> Parsed<()> {
        self.deeper()?;
        let keyword = self.bump();
        if !self.at(TokenKind::LeftParen) {
            return Err(self.no_bracket("(", keyword));
        }
        self.open(TokenKind::LeftParen, "(")?;
        let free = self.free.len();
        let expression = self.expression()?;
        self.free.truncate(free);
        if !self.eat_keyword(Keyword::As) {
            let mut failure = self.no_as();
            if failure.kind == ErrorKind::MissingAs {
                let note = "BIND gives a value to a new variable, `BIND(5 AS ?x)`; FILTER compares";
                failure.hint = Some(Hint::Note(note));
            }
            return Err(failure);
        }
        let token = self.token;
        let (id, variable) = self.variable()?;
        self.close(TokenKind::RightParen)?;
        if self.scope.has(id, group.mark) {
            let variable = variable.as_str().to_owned();
            let failure = self.error_at(token, ErrorKind::AlreadyBound { variable });
            let hint = Hint::Note("give it another name, or compare with FILTER");
            self.report(failure.with_hint(hint))?;
        }
        self.scope.see(id);
        self.assigned.add(id, token);
        group.pattern = GraphPattern::Extend {
            inner: Box::new(std::mem::take(&mut group.pattern)),
            variable,
            expression,
        };
        Ok(())
    }

    /// What stands behind `VALUES`.
    pub(super) fn data_block(&mut self) -> Parsed<GraphPattern> {
        let (variables, bindings) = match self.at(TokenKind::LeftParen) {
            true => self.data_rows()?,
            false => {
                let token = self.token;
                let (id, variable) = self.variable()?;
                self.scope.see(id);
                self.assigned.add(id, token);
                self.open_brace()?;
                let mut bindings = Vec::new();
                while !self.at(TokenKind::RightBrace) {
                    bindings.push(vec![self.data_value()?]);
                }
                self.close(TokenKind::RightBrace)?;
                (vec![variable], bindings)
            }
        };
        Ok(GraphPattern::Values {
            variables,
            bindings,
        })
    }

    #[expect(clippy::type_complexity, reason = "the parts of a VALUES pattern")]
    fn data_rows(&mut self) -> Parsed<(Vec<Variable>, Vec<Vec<Option<GroundTerm>>>)> {
        self.open(TokenKind::LeftParen, "(")?;
        let mut variables = Vec::new();
        let mark = self.scope.mark();
        while !self.at(TokenKind::RightParen) {
            let token = self.token;
            let (id, variable) = self.variable()?;
            if self.scope.has(id, mark) {
                let failure = self.repeated(id, token);
                self.report(failure)?;
            }
            self.scope.see(id);
            self.assigned.add(id, token);
            variables.push(variable);
        }
        self.close(TokenKind::RightParen)?;
        self.open_brace()?;
        let mut bindings = Vec::new();
        while !self.at(TokenKind::RightBrace) {
            let token = self.token;
            // Not counted as groups: rows are a list, however many they are.
            if !self.eat(TokenKind::LeftParen) {
                return Err(self.no_row());
            }
            let mut row = Vec::with_capacity(variables.len());
            while !self.at(TokenKind::RightParen) {
                row.push(self.data_value()?);
            }
            self.bump();
            if row.len() != variables.len() {
                let kind = ErrorKind::RowLength {
                    expected: variables.len(),
                    given: row.len(),
                };
                let failure = self.error_at(token, kind);
                self.report(failure)?;
                continue;
            }
            bindings.push(row);
        }
        self.close(TokenKind::RightBrace)?;
        Ok((variables, bindings))
    }

    pub(super) fn repeated(&self, id: VariableId, token: crate::token::Token) -> super::Failure {
        let variable = self.names.name(id).to_owned();
        self.error_at(token, ErrorKind::RepeatedVariable { variable })
    }

    fn data_value(&mut self) -> Parsed<Option<GroundTerm>> {
        if self.eat_keyword(Keyword::Undef) {
            return Ok(None);
        }
        Ok(Some(self.ground_term()?))
    }

    pub(super) fn ground_term(&mut self) -> Parsed<GroundTerm> {
        self.expected.thing(Thing::Data);
        Ok(match self.token.kind {
            kind if is_iri(kind) => self.iri()?.into(),
            kind if is_literal(kind) => self.literal()?.into(),
            _ if self.at_signed_number() => self.signed_number().into(),
            TokenKind::LeftTripleTerm => self.ground_triple()?.into(),
            _ => return Err(self.no_data()),
        })
    }

    fn ground_triple(&mut self) -> Parsed<GroundTriple> {
        self.open(TokenKind::LeftTripleTerm, "<<(")?;
        if !is_iri(self.token.kind) {
            let kind = match begins_triples(self.token.kind) {
                true => ErrorKind::InvalidSubject,
                false => ErrorKind::Unexpected,
            };
            self.expected.thing(Thing::Iri);
            return Err(self.error(kind));
        }
        let subject = self.iri()?;
        let predicate = match self.eat_keyword(Keyword::A) {
            true => rdf_type(),
            false => self.iri()?,
        };
        let object = self.ground_term()?;
        self.close(TokenKind::RightTripleTerm)?;
        Ok(GroundTriple {
            subject,
            predicate,
            object,
        })
    }
}
