//! Calls of built-in functions and aggregates.

use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, Function};
use spargebra::term::NamedNode;

use super::{Aggregates, Parsed, Parser};
use crate::error::{ErrorKind, Hint};
use crate::token::{Token, TokenKind};
use crate::word::{BuiltIn, Call, Keyword};

/// GeoSPARQL's functions whose names begin so are its aggregates: nothing else tells a call of an
/// aggregate by IRI from that of a function (SPARQL 1.1, 19.8, note 11).
const PLACES_AGGREGATES: &str = "http://www.opengis.net/def/function/geosparql/agg";

fn is_aggregate(iri: &str) -> bool {
    iri.starts_with(PLACES_AGGREGATES)
}

impl Parser<'_, '_> {
    /// A call of this function, whose name is here.
    pub(super) fn built_in(&mut self, function: BuiltIn) -> Parsed<Expression> {
        let name = self.bump();
        if !self.at(TokenKind::LeftParen) {
            return Err(self.no_bracket("(", name));
        }
        let row = function.row();
        match &row.call {
            Call::Function(built_in) => {
                let arguments = self.arguments(function, name)?;
                Ok(Expression::FunctionCall(built_in.clone(), arguments))
            }
            Call::Bound => self.bound(),
            Call::Coalesce => {
                let free = self.free.len();
                let list = self.expressions()?;
                // It gives a value where they have none.
                self.free.truncate(free);
                Ok(Expression::Coalesce(list))
            }
            Call::If => {
                let mut parts = self.arguments(function, name)?.into_iter().map(Box::new);
                match (parts.next(), parts.next(), parts.next()) {
                    (Some(condition), Some(then), Some(otherwise)) => {
                        Ok(Expression::If(condition, then, otherwise))
                    }
                    _ => Ok(self.fresh_variable().into()),
                }
            }
            Call::SameTerm => {
                let mut parts = self.arguments(function, name)?.into_iter().map(Box::new);
                match (parts.next(), parts.next()) {
                    (Some(left), Some(right)) => Ok(Expression::SameTerm(left, right)),
                    _ => Ok(self.fresh_variable().into()),
                }
            }
            Call::Count | Call::GroupConcat | Call::Aggregate(_) => {
                let depth = self.opened.len();
                match self.aggregate(function, name) {
                    Ok(expression) => Ok(expression),
                    Err(failure) => {
                        self.recover_behind_bracket(failure, depth)?;
                        Ok(self.fresh_variable().into())
                    }
                }
            }
        }
    }

    /// As many arguments as the function takes.
    fn arguments(&mut self, function: BuiltIn, name: Token) -> Parsed<Vec<Expression>> {
        let arguments = self.expressions()?;
        let (least, most) = function.row().arguments;
        if !(least..=most).contains(&arguments.len()) {
            let kind = ErrorKind::ArgumentCount {
                function: function.name(),
                least,
                most,
                given: arguments.len(),
            };
            let failure = self.error_at(name, kind);
            self.report(failure)?;
        }
        Ok(arguments)
    }

    fn bound(&mut self) -> Parsed<Expression> {
        self.open(TokenKind::LeftParen, "(")?;
        let (_, variable) = self.variable()?;
        self.close(TokenKind::RightParen)?;
        Ok(Expression::Bound(variable))
    }

    /// A call of a function that has no name but an IRI, which stands before the bracket at a
    /// token.
    pub(super) fn called_by_iri(&mut self, iri: NamedNode, name: Token) -> Parsed<Expression> {
        if !is_aggregate(iri.as_str()) {
            let arguments = self.expressions()?;
            return Ok(Expression::FunctionCall(Function::Custom(iri), arguments));
        }
        let depth = self.opened.len();
        let found = self.aggregate_of(name, |parser| {
            parser.open(TokenKind::LeftParen, "(")?;
            let distinct = parser.eat_keyword(Keyword::Distinct);
            let expr = parser.expression()?;
            parser.close(TokenKind::RightParen)?;
            Ok(AggregateExpression::FunctionCall {
                name: AggregateFunction::Custom(iri),
                expr,
                distinct,
            })
        });
        match found {
            Ok(expression) => Ok(expression),
            Err(failure) => {
                self.recover_behind_bracket(failure, depth)?;
                Ok(self.fresh_variable().into())
            }
        }
    }

    /// An aggregate: a variable in its place, and itself kept for the group.
    fn aggregate(&mut self, function: BuiltIn, name: Token) -> Parsed<Expression> {
        self.aggregate_of(name, |parser| parser.aggregated(function))
    }

    /// The same, read in this way.
    fn aggregate_of(
        &mut self,
        name: Token,
        read: impl FnOnce(&mut Self) -> Parsed<AggregateExpression>,
    ) -> Parsed<Expression> {
        match self.aggregates {
            Aggregates::Allowed => {}
            Aggregates::Inside => {
                let failure = self.error_at(name, ErrorKind::NestedAggregate);
                let hint = Hint::Note("compute the inner one in a subquery, `{ SELECT .. }`");
                self.report(failure.with_hint(hint))?;
            }
            Aggregates::No => {
                let failure = self.error_at(name, ErrorKind::MisplacedAggregate);
                let hint = Hint::Note(
                    "aggregates stand in SELECT, HAVING and ORDER BY; a condition on groups is `HAVING (...)`",
                );
                self.report(failure.with_hint(hint))?;
            }
        }
        let free = self.free.len();
        let aggregate = self.with_aggregates(Aggregates::Inside, read)?;
        self.free.truncate(free);
        let text = self.text;
        let fresh = &mut self.fresh;
        let variable = self
            .aggregates_found
            .variable(aggregate, name, || fresh.name(text));
        Ok(variable.into())
    }

    fn aggregated(&mut self, function: BuiltIn) -> Parsed<AggregateExpression> {
        self.open(TokenKind::LeftParen, "(")?;
        let distinct = self.eat_keyword(Keyword::Distinct);
        let call = &function.row().call;
        if matches!(call, Call::Count) && self.eat(TokenKind::Star) {
            self.close(TokenKind::RightParen)?;
            return Ok(AggregateExpression::CountSolutions { distinct });
        }
        let expr = self.expression()?;
        if self.token.kind == TokenKind::Comma {
            let is_concat = matches!(call, Call::GroupConcat);
            return Err(self.second_argument(function, is_concat));
        }
        let name = match call {
            Call::Aggregate(name) => name.clone(),
            Call::GroupConcat => {
                let mut separator = None;
                if self.eat(TokenKind::Semicolon) {
                    if !self.eat_keyword(Keyword::Separator) {
                        return Err(self.no_keyword(Keyword::Separator));
                    }
                    self.expect(TokenKind::Equal)?;
                    separator = Some(self.string()?);
                }
                AggregateFunction::GroupConcat { separator }
            }
            _ => AggregateFunction::Count,
        };
        self.close(TokenKind::RightParen)?;
        Ok(AggregateExpression::FunctionCall {
            name,
            expr,
            distinct,
        })
    }
}
