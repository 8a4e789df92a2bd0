//! Expressions, by precedence climbing: brackets recurse, chains of operators are loops.

use spargebra::algebra::{Expression, Function};

use super::literal::{is_iri, is_literal};
use super::{Aggregates, Parsed, Parser};
use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::lexer::Lexer;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

/// How tightly operators bind, from `||` to `*`.
const OR: u8 = 1;
const AND: u8 = 2;
const COMPARISON: u8 = 3;
const SUM: u8 = 4;
const PRODUCT: u8 = 5;

const OPERATORS: [TokenKind; 12] = [
    TokenKind::Or,
    TokenKind::And,
    TokenKind::Equal,
    TokenKind::NotEqual,
    TokenKind::Less,
    TokenKind::LessOrEqual,
    TokenKind::Greater,
    TokenKind::GreaterOrEqual,
    TokenKind::Plus,
    TokenKind::Minus,
    TokenKind::Star,
    TokenKind::Slash,
];

fn precedence(kind: TokenKind) -> Option<u8> {
    Some(match kind {
        TokenKind::Or => OR,
        TokenKind::And => AND,
        TokenKind::Equal
        | TokenKind::NotEqual
        | TokenKind::Less
        | TokenKind::LessOrEqual
        | TokenKind::Greater
        | TokenKind::GreaterOrEqual
        | TokenKind::Keyword(Keyword::In | Keyword::Not) => COMPARISON,
        TokenKind::Plus | TokenKind::Minus => SUM,
        TokenKind::Star | TokenKind::Slash => PRODUCT,
        _ => return None,
    })
}

/// Whether an expression can begin here.
pub(super) fn begins_expression(kind: TokenKind) -> bool {
    is_iri(kind)
        || is_literal(kind)
        || matches!(
            kind,
            TokenKind::Variable
                | TokenKind::LeftParen
                | TokenKind::LeftTripleTerm
                | TokenKind::Not
                | TokenKind::Plus
                | TokenKind::Minus
                | TokenKind::BuiltIn(_)
                | TokenKind::Keyword(Keyword::Exists | Keyword::Not)
        )
}

impl Parser<'_, '_> {
    /// A whole expression.
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        self.operation(OR)
    }

    /// Operators that bind at least as tightly as `least`.
    fn operation(&mut self, least: u8) -> Parsed<Expression> {
        let mut left = self.unary()?;
        // What binds more tightly than the last operator belongs to its right side, or, as a
        // comparison is no operand of another, nowhere.
        let mut most = PRODUCT;
        loop {
            self.less_for_iri();
            let operator = self.token;
            let Some(precedence) = precedence(operator.kind) else {
                break;
            };
            if precedence < least || precedence > most {
                break;
            }
            self.deeper()?;
            self.bump();
            most = match precedence {
                COMPARISON => AND,
                other => other,
            };
            left = match operator.kind {
                TokenKind::Keyword(Keyword::In) => {
                    Expression::In(Box::new(left), self.list_of_in()?)
                }
                TokenKind::Keyword(_) => {
                    self.expect_keyword(Keyword::In)?;
                    let list = self.list_of_in()?;
                    Expression::Not(Box::new(Expression::In(Box::new(left), list)))
                }
                kind => {
                    if !begins_expression(self.token.kind)
                        && let Some(failure) = self.doubled_operator(operator)
                    {
                        return Err(failure);
                    }
                    let right = self.operation(precedence + 1)?;
                    binary(kind, left, right)
                }
            };
        }
        if least == OR {
            for operator in OPERATORS {
                self.expected.token(operator);
            }
            self.expected.token(TokenKind::Keyword(Keyword::In));
        }
        Ok(left)
    }

    /// Behind an operand no IRI can stand: `?a<5&&?b>3` holds two comparisons. Where one begins
    /// like a variable, the longest token wins all the same (the W3C's `syn-bad-26` wants that).
    fn less_for_iri(&mut self) {
        if self.token.kind != TokenKind::Iri {
            return;
        }
        let text = self.text_of(self.token);
        if text.starts_with("<?") || text.starts_with("<$") || text.contains("://") {
            return;
        }
        let mut lexer = Lexer::starting_at(self.text, self.token.start as usize);
        let kind = lexer.less_sign();
        self.token = Token {
            kind,
            start: self.token.start,
            end: lexer.place(),
        };
        self.lexer = lexer;
    }

    fn unary(&mut self) -> Parsed<Expression> {
        self.expected.thing(Thing::Expression);
        let mut negations = 0_usize;
        while self.token.kind == TokenKind::Not {
            self.deeper()?;
            self.bump();
            negations += 1;
        }
        let mut expression = match self.token.kind {
            TokenKind::Plus => {
                self.deeper()?;
                self.bump();
                Expression::UnaryPlus(Box::new(self.primary()?))
            }
            TokenKind::Minus => {
                self.deeper()?;
                self.bump();
                Expression::UnaryMinus(Box::new(self.primary()?))
            }
            _ => self.primary()?,
        };
        for _ in 0..negations {
            expression = Expression::Not(Box::new(expression));
        }
        Ok(expression)
    }

    fn primary(&mut self) -> Parsed<Expression> {
        self.expected.thing(Thing::Expression);
        match self.token.kind {
            TokenKind::Variable => {
                let token = self.token;
                let (id, variable) = self.variable()?;
                self.free.push((id, token));
                Ok(variable.into())
            }
            TokenKind::LeftParen => self.bracketed(),
            TokenKind::LeftTripleTerm => self.triple_expression(),
            TokenKind::BuiltIn(function) => self.built_in(function),
            TokenKind::Keyword(Keyword::Exists | Keyword::Not) => self.exists(),
            kind if is_iri(kind) => {
                let name = self.token;
                let iri = self.iri()?;
                if !self.at(TokenKind::LeftParen) {
                    return Ok(iri.into());
                }
                self.called_by_iri(iri, name)
            }
            kind if is_literal(kind) => Ok(self.literal()?.into()),
            // Behind another sign: `- -1`.
            _ if self.at_signed_number() => Ok(self.signed_number().into()),
            _ => Err(self.no_expression()),
        }
    }

    /// An expression in brackets.
    pub(super) fn bracketed(&mut self) -> Parsed<Expression> {
        let depth = self.opened.len();
        self.open(TokenKind::LeftParen, "(")?;
        let inner = self.expression();
        match inner.and_then(|inner| self.close(TokenKind::RightParen).map(|()| inner)) {
            Ok(inner) => Ok(inner),
            Err(failure) => {
                self.recover_behind_bracket(failure, depth)?;
                Ok(self.fresh_variable().into())
            }
        }
    }

    /// The list behind `IN`.
    fn list_of_in(&mut self) -> Parsed<Vec<Expression>> {
        if !self.at(TokenKind::LeftParen) {
            return Err(self.no_bracket("(", self.previous));
        }
        self.expressions()
    }

    /// Expressions in brackets with commas in between.
    pub(super) fn expressions(&mut self) -> Parsed<Vec<Expression>> {
        let depth = self.opened.len();
        self.open(TokenKind::LeftParen, "(")?;
        match self.expressions_inside() {
            Ok(list) => Ok(list),
            Err(failure) => {
                self.recover_behind_bracket(failure, depth)?;
                Ok(Vec::new())
            }
        }
    }

    fn expressions_inside(&mut self) -> Parsed<Vec<Expression>> {
        let mut list = Vec::new();
        if self.at(TokenKind::RightParen) {
            self.close(TokenKind::RightParen)?;
            return Ok(list);
        }
        loop {
            list.push(self.expression()?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close_arguments()?;
        Ok(list)
    }

    /// The bracket behind arguments.
    pub(super) fn close_arguments(&mut self) -> Parsed<()> {
        if self.token.kind != TokenKind::RightParen && begins_expression(self.token.kind) {
            return Err(self.error(ErrorKind::MissingComma));
        }
        self.close(TokenKind::RightParen)
    }

    /// `EXISTS { ... }` and `NOT EXISTS { ... }`.
    fn exists(&mut self) -> Parsed<Expression> {
        let is_negated = self.eat_keyword(Keyword::Not);
        if is_negated {
            self.deeper()?;
        }
        if !self.at_keyword(Keyword::Exists) {
            let failure = self.unexpected();
            return Err(match is_negated {
                true => failure.with_hint(Hint::Note("the negation of a condition is `!`")),
                false => failure,
            });
        }
        self.bump();
        let (mark, free) = (self.scope.mark(), self.free.len());
        // A filter does not end a basic graph pattern (SPARQL 1.1, 5.1): labels before it go on
        // behind it.
        let labels = self.label_group;
        let assigned = self.assigned.mark();
        let pattern = self.group()?;
        self.assigned.forget(assigned);
        self.label_group = labels;
        // Its variables are its own.
        self.scope.forget(mark);
        self.free.truncate(free);
        let exists = Expression::Exists(Box::new(pattern));
        Ok(match is_negated {
            true => Expression::Not(Box::new(exists)),
            false => exists,
        })
    }

    /// `<<( ?s ?p ?o )>>` in an expression: its subject is a variable or an IRI.
    fn triple_expression(&mut self) -> Parsed<Expression> {
        self.open(TokenKind::LeftTripleTerm, "<<(")?;
        if is_literal(self.token.kind)
            || self.at_signed_number()
            || self.token.kind == TokenKind::LeftTripleTerm
        {
            let failure = self.error(ErrorKind::InvalidSubject);
            self.report(failure)?;
        }
        let subject = self.triple_part()?;
        let predicate = match self.token.kind {
            TokenKind::Variable => {
                let token = self.token;
                let (id, variable) = self.variable()?;
                self.free.push((id, token));
                variable.into()
            }
            TokenKind::Keyword(Keyword::A) => {
                self.bump();
                super::literal::rdf_type().into()
            }
            _ => self.iri()?.into(),
        };
        let object = self.triple_part()?;
        self.close(TokenKind::RightTripleTerm)?;
        Ok(Expression::FunctionCall(
            Function::Triple,
            vec![subject, predicate, object],
        ))
    }

    fn triple_part(&mut self) -> Parsed<Expression> {
        self.expected.thing(Thing::Term);
        match self.token.kind {
            TokenKind::LeftTripleTerm => self.triple_expression(),
            TokenKind::Variable => {
                let token = self.token;
                let (id, variable) = self.variable()?;
                self.free.push((id, token));
                Ok(variable.into())
            }
            kind if is_iri(kind) => Ok(self.iri()?.into()),
            kind if is_literal(kind) => Ok(self.literal()?.into()),
            _ if self.at_signed_number() => Ok(self.signed_number().into()),
            _ => Err(self.no_term()),
        }
    }

    /// What stands behind `FILTER` and `HAVING`: brackets, or a call.
    pub(super) fn constraint(&mut self, after: Keyword) -> Parsed<Expression> {
        self.expected.token(TokenKind::LeftParen);
        self.expected.thing(Thing::Function);
        let call = self.token;
        let condition = match call.kind {
            TokenKind::LeftParen => return self.bracketed(),
            TokenKind::BuiltIn(function) => self.built_in(function)?,
            TokenKind::Keyword(Keyword::Exists | Keyword::Not) => return self.exists(),
            kind if is_iri(kind) => {
                let iri = self.iri()?;
                if !self.at(TokenKind::LeftParen) {
                    return Err(self.unexpected());
                }
                self.called_by_iri(iri, call)?
            }
            _ => return Err(self.no_constraint(after)),
        };
        match self.condition_without_brackets(after, call) {
            Some(failure) => Err(failure),
            None => Ok(condition),
        }
    }

    /// Whether a constraint begins here.
    pub(super) fn at_constraint(&mut self) -> bool {
        self.expected.token(TokenKind::LeftParen);
        self.at_thing(Thing::Function, |kind| {
            is_iri(kind)
                || matches!(
                    kind,
                    TokenKind::LeftParen
                        | TokenKind::BuiltIn(_)
                        | TokenKind::Keyword(Keyword::Exists | Keyword::Not)
                )
        })
    }

    /// Runs a rule in which aggregates are treated otherwise.
    pub(super) fn with_aggregates<T>(
        &mut self,
        aggregates: Aggregates,
        rule: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        let before = std::mem::replace(&mut self.aggregates, aggregates);
        let result = rule(self);
        self.aggregates = before;
        result
    }
}

fn binary(kind: TokenKind, left: Expression, right: Expression) -> Expression {
    let (left, right) = (Box::new(left), Box::new(right));
    match kind {
        TokenKind::Or => Expression::Or(left, right),
        TokenKind::And => Expression::And(left, right),
        TokenKind::Equal => Expression::Equal(left, right),
        TokenKind::NotEqual => Expression::Not(Box::new(Expression::Equal(left, right))),
        TokenKind::Less => Expression::Less(left, right),
        TokenKind::LessOrEqual => Expression::LessOrEqual(left, right),
        TokenKind::Greater => Expression::Greater(left, right),
        TokenKind::GreaterOrEqual => Expression::GreaterOrEqual(left, right),
        TokenKind::Plus => Expression::Add(left, right),
        TokenKind::Minus => Expression::Subtract(left, right),
        TokenKind::Star => Expression::Multiply(left, right),
        _ => Expression::Divide(left, right),
    }
}
