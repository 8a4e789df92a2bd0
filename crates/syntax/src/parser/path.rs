//! Property paths.

use spargebra::algebra::PropertyPathExpression as Path;
use spargebra::term::NamedNode;

use super::literal::{is_iri, rdf_type};
use super::{Parsed, Parser};
use crate::expected::Thing;
use crate::token::TokenKind;
use crate::word::Keyword;

/// Whether a path can begin here.
pub(super) fn begins_path(kind: TokenKind) -> bool {
    is_iri(kind)
        || matches!(
            kind,
            TokenKind::Keyword(Keyword::A)
                | TokenKind::Caret
                | TokenKind::Not
                | TokenKind::LeftParen
        )
}

impl Parser<'_, '_> {
    /// Alternatives of sequences.
    pub(super) fn path(&mut self) -> Parsed<Path> {
        let first = self.path_step()?;
        self.path_behind(first)
    }

    /// The same, where the first IRI is taken already.
    pub(super) fn path_from(&mut self, first: NamedNode) -> Parsed<Path> {
        let first = self.with_repetition(first.into());
        self.path_behind(first)
    }

    fn path_behind(&mut self, first: Path) -> Parsed<Path> {
        let mut path = self.sequence_behind(first)?;
        while self.eat(TokenKind::Bar) {
            self.deeper()?;
            let next = self.path_step()?;
            let next = self.sequence_behind(next)?;
            path = Path::Alternative(Box::new(path), Box::new(next));
        }
        Ok(path)
    }

    fn sequence_behind(&mut self, first: Path) -> Parsed<Path> {
        let mut path = first;
        while self.eat(TokenKind::Slash) {
            self.deeper()?;
            let next = self.path_step()?;
            path = Path::Sequence(Box::new(path), Box::new(next));
        }
        Ok(path)
    }

    /// One step, perhaps backwards, perhaps repeated.
    fn path_step(&mut self) -> Parsed<Path> {
        let is_inverse = self.eat(TokenKind::Caret);
        let path = self.path_primary()?;
        Ok(inverse(self.with_repetition(path), is_inverse))
    }

    /// A step with the sign behind it that repeats it.
    fn with_repetition(&mut self, path: Path) -> Path {
        let path = match self.token.kind {
            TokenKind::QuestionMark => Path::ZeroOrOne(Box::new(path)),
            TokenKind::Star => Path::ZeroOrMore(Box::new(path)),
            // The longest token wins: the sign of `:p +1` is the number's.
            TokenKind::Plus if !self.at_signed_number() => Path::OneOrMore(Box::new(path)),
            _ => {
                for kind in [TokenKind::QuestionMark, TokenKind::Star, TokenKind::Plus] {
                    self.expected.token(kind);
                }
                return path;
            }
        };
        self.bump();
        path
    }

    fn path_primary(&mut self) -> Parsed<Path> {
        self.expected.thing(Thing::Path);
        match self.token.kind {
            TokenKind::Keyword(Keyword::A) => {
                self.bump();
                Ok(rdf_type().into())
            }
            TokenKind::Not => {
                self.bump();
                self.negated_set()
            }
            TokenKind::LeftParen => {
                self.open(TokenKind::LeftParen, "(")?;
                let path = self.path()?;
                self.close(TokenKind::RightParen)?;
                Ok(path)
            }
            kind if is_iri(kind) => Ok(self.iri()?.into()),
            _ => Err(self.no_predicate()),
        }
    }

    fn negated_set(&mut self) -> Parsed<Path> {
        let (mut direct, mut inverse) = (Vec::new(), Vec::new());
        if self.at(TokenKind::LeftParen) {
            self.open(TokenKind::LeftParen, "(")?;
            // `!()` is any step forwards.
            while !direct.is_empty() || !inverse.is_empty() || !self.at(TokenKind::RightParen) {
                let (node, is_inverse) = self.negated_step()?;
                match is_inverse {
                    true => inverse.push(node),
                    false => direct.push(node),
                }
                if !self.eat(TokenKind::Bar) {
                    break;
                }
            }
            self.close(TokenKind::RightParen)?;
        } else {
            let (node, is_inverse) = self.negated_step()?;
            match is_inverse {
                true => inverse.push(node),
                false => direct.push(node),
            }
        }
        let backwards = |nodes| Path::Reverse(Box::new(Path::NegatedPropertySet(nodes)));
        Ok(if inverse.is_empty() {
            Path::NegatedPropertySet(direct)
        } else if direct.is_empty() {
            backwards(inverse)
        } else {
            Path::Alternative(
                Box::new(Path::NegatedPropertySet(direct)),
                Box::new(backwards(inverse)),
            )
        })
    }

    fn negated_step(&mut self) -> Parsed<(NamedNode, bool)> {
        let is_inverse = self.eat(TokenKind::Caret);
        let node = match self.eat_keyword(Keyword::A) {
            true => rdf_type(),
            false if !self.at_thing(Thing::Iri, is_iri) => return Err(self.no_step()),
            false => self.iri()?,
        };
        Ok((node, is_inverse))
    }
}

fn inverse(path: Path, is_inverse: bool) -> Path {
    match is_inverse {
        true => Path::Reverse(Box::new(path)),
        false => path,
    }
}
