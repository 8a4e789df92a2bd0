//! Solution modifiers: groups, conditions, order, limits, `VALUES`.

use spargebra::algebra::{Expression, GraphPattern, OrderExpression};
use spargebra::term::Variable;

use super::{Aggregates, Parsed, Parser};
use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::names::VariableId;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

/// `GROUP BY`.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    pub(super) variables: Vec<Variable>,
    /// Of those that the text names.
    pub(super) ids: Vec<VariableId>,
    pub(super) computed: Vec<(Expression, Variable)>,
    /// The variables that `AS` names, which must have no value before.
    pub(super) assigned: Vec<(VariableId, Token)>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Modifiers {
    pub(super) group: Option<Grouping>,
    pub(super) having: Option<Expression>,
    pub(super) order: Option<Vec<OrderExpression>>,
    /// How many rows are left out, and how many are taken.
    pub(super) slice: Option<(usize, Option<usize>)>,
    pub(super) values: Option<GraphPattern>,
    /// The variables of these values.
    pub(super) value_ids: Vec<VariableId>,
}

/// The clauses in their order, by the keywords that they begin with. The bounds have no order among
/// themselves.
const CLAUSES: [(Keyword, &str, u8); 7] = [
    (Keyword::Where, "WHERE", 0),
    (Keyword::Group, "GROUP BY", 1),
    (Keyword::Having, "HAVING", 2),
    (Keyword::Order, "ORDER BY", 3),
    (Keyword::Limit, "LIMIT", 4),
    (Keyword::Offset, "OFFSET", 4),
    (Keyword::Values, "VALUES", 5),
];

impl Parser<'_, '_> {
    /// The clauses, each of which may be missing.
    pub(super) fn modifiers(&mut self) -> Parsed<Modifiers> {
        let mut modifiers = Modifiers::default();
        loop {
            let (free, depth) = (self.free.len(), self.opened.len());
            let result = self.clauses(&mut modifiers);
            self.free.truncate(free);
            let Err(failure) = result else {
                return Ok(modifiers);
            };
            // Each round takes a clause at least, for it stops before a keyword that the next
            // begins with.
            self.recover_in_clauses(failure, depth)?;
        }
    }

    fn clauses(&mut self, modifiers: &mut Modifiers) -> Parsed<()> {
        let mut last = None;
        let free = self.free.len();
        if self.eat_keyword(Keyword::Group) {
            last = Some(Keyword::Group);
            self.expect_by()?;
            modifiers.group = Some(self.grouping()?);
        }
        if self.eat_keyword(Keyword::Having) {
            last = Some(Keyword::Having);
            modifiers.having = Some(self.with_aggregates(Aggregates::Allowed, Self::having)?);
        }
        if self.eat_keyword(Keyword::Order) {
            last = Some(Keyword::Order);
            self.expect_by()?;
            modifiers.order = Some(self.with_aggregates(Aggregates::Allowed, Self::order)?);
        }
        self.free.truncate(free);
        if let Some(slice) = self.slice(&mut last)? {
            modifiers.slice = Some(slice);
        }
        if self.eat_keyword(Keyword::Values) {
            last = Some(Keyword::Values);
            let mark = self.scope.mark();
            modifiers.values = Some(self.data_block()?);
            modifiers.value_ids = self.scope.since(mark);
        }
        self.check_order_of_clauses(last)
    }

    fn expect_by(&mut self) -> Parsed<()> {
        match self.eat_keyword(Keyword::By) {
            true => Ok(()),
            false => Err(self.no_keyword(Keyword::By)),
        }
    }

    /// A clause behind one that it must stand before.
    fn check_order_of_clauses(&self, last: Option<Keyword>) -> Parsed<()> {
        let TokenKind::Keyword(keyword) = self.token.kind else {
            return Ok(());
        };
        let find = |keyword| CLAUSES.iter().find(|(it, ..)| *it == keyword);
        match (find(keyword), last.and_then(find)) {
            (Some((_, clause, place)), Some((_, before, last))) if place < last => {
                let kind = ErrorKind::ClauseOrder { clause, before };
                Err(self.error(kind))
            }
            _ => Ok(()),
        }
    }

    fn grouping(&mut self) -> Parsed<Grouping> {
        let mut grouping = Grouping::default();
        loop {
            if self.at_thing(Thing::Variable, |it| it == TokenKind::Variable) {
                let (id, variable) = self.variable()?;
                grouping.ids.push(id);
                grouping.variables.push(variable);
            } else if self.token.kind == TokenKind::LeftParen {
                self.open(TokenKind::LeftParen, "(")?;
                let expression = self.expression()?;
                let name = match self.eat_keyword(Keyword::As) {
                    true => {
                        let token = self.token;
                        let (id, variable) = self.variable()?;
                        self.assigned.add(id, token);
                        grouping.assigned.push((id, token));
                        Some((id, variable))
                    }
                    false => None,
                };
                self.close(TokenKind::RightParen)?;
                match (name, expression) {
                    (Some((id, variable)), expression) => {
                        grouping.ids.push(id);
                        grouping.variables.push(variable.clone());
                        grouping.computed.push((expression, variable));
                    }
                    (None, Expression::Variable(variable)) => {
                        grouping.ids.extend(self.free.last().map(|(id, _)| *id));
                        grouping.variables.push(variable);
                    }
                    (None, expression) => self.computed_group(&mut grouping, expression),
                }
            } else if self.at_constraint() {
                let expression = self.constraint(Keyword::By)?;
                self.computed_group(&mut grouping, expression);
            } else if grouping.variables.is_empty()
                || matches!(self.token.kind, TokenKind::Word | TokenKind::Comma)
            {
                return Err(self.no_order_key());
            } else {
                return Ok(grouping);
            }
        }
    }

    fn computed_group(&mut self, grouping: &mut Grouping, expression: Expression) {
        let variable = self.fresh_variable();
        grouping.variables.push(variable.clone());
        grouping.computed.push((expression, variable));
    }

    fn having(&mut self) -> Parsed<Expression> {
        let mut condition = self.constraint(Keyword::Having)?;
        while self.at_constraint() {
            self.deeper()?;
            let next = self.constraint(Keyword::Having)?;
            condition = Expression::And(Box::new(condition), Box::new(next));
        }
        Ok(condition)
    }

    fn order(&mut self) -> Parsed<Vec<OrderExpression>> {
        let mut order = Vec::new();
        loop {
            let is_ascending = self.at_keyword(Keyword::Asc);
            if is_ascending || self.at_keyword(Keyword::Desc) {
                let before = self.previous;
                let keyword = self.bump();
                if !self.at(TokenKind::LeftParen) {
                    return Err(self.direction_without_bracket(before, keyword));
                }
                let expression = self.bracketed()?;
                order.push(match is_ascending {
                    true => OrderExpression::Asc(expression),
                    false => OrderExpression::Desc(expression),
                });
            } else if self.at_thing(Thing::Variable, |it| it == TokenKind::Variable) {
                order.push(OrderExpression::Asc(self.variable()?.1.into()));
            } else if self.at_constraint() {
                order.push(OrderExpression::Asc(self.constraint(Keyword::By)?));
            } else if order.is_empty()
                || matches!(self.token.kind, TokenKind::Word | TokenKind::Comma)
            {
                return Err(self.no_order_key());
            } else {
                return Ok(order);
            }
        }
    }

    fn slice(&mut self, last: &mut Option<Keyword>) -> Parsed<Option<(usize, Option<usize>)>> {
        let (mut start, mut length) = (None, None);
        loop {
            if length.is_none() && self.at_keyword(Keyword::Limit) {
                *last = Some(Keyword::Limit);
                length = Some(self.bound_of_rows("LIMIT")?);
            } else if start.is_none() && self.at_keyword(Keyword::Offset) {
                *last = Some(Keyword::Offset);
                start = Some(self.bound_of_rows("OFFSET")?);
            } else {
                let is_any = start.is_some() || length.is_some();
                return Ok(is_any.then_some((start.unwrap_or(0), length)));
            }
        }
    }

    fn bound_of_rows(&mut self, clause: &'static str) -> Parsed<usize> {
        let keyword = self.bump();
        let is_number = self.at_thing(Thing::WholeNumber, |it| it == TokenKind::Integer);
        let number = match is_number {
            true => self.text_of(self.token).parse().ok(),
            false => None,
        };
        match number {
            Some(number) => {
                self.bump();
                match self.limit_of_two(keyword) {
                    Some(failure) => Err(failure),
                    None => Ok(number),
                }
            }
            None => {
                let failure = self.error(ErrorKind::InvalidNumber { clause });
                Err(match is_number {
                    true => failure.with_hint(Hint::Note("this one is too large")),
                    false => failure,
                })
            }
        }
    }
}
