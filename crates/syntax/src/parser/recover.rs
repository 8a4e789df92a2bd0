//! Error recovery: the next place where parsing can resume.
//!
//! A strict reader has no use for that and passes the error on. A tolerant one keeps it, skips to a
//! `.`, a closing bracket or a keyword that belongs to where the failed rule stands, and leaves out
//! what it could not read (in an expression a variable of its own stands there). Skipping is
//! forwards only, and takes at least a token each time, so it ends.

use super::{Failure, Parsed, Parser};
use crate::token::TokenKind;
use crate::word::Keyword;

/// Keywords with which an element of a group begins.
fn begins_element(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Keyword(
            Keyword::Optional
                | Keyword::Union
                | Keyword::Minus
                | Keyword::Lateral
                | Keyword::Graph
                | Keyword::Service
                | Keyword::Filter
                | Keyword::Bind
                | Keyword::Values
        )
    )
}

/// Whether braces or other brackets open here.
fn opens(kind: TokenKind) -> Option<bool> {
    match kind {
        TokenKind::LeftBrace => Some(true),
        TokenKind::LeftParen
        | TokenKind::LeftBracket
        | TokenKind::LeftTriple
        | TokenKind::LeftTripleTerm
        | TokenKind::LeftAnnotation => Some(false),
        _ => None,
    }
}

fn closes(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::RightParen
            | TokenKind::RightBracket
            | TokenKind::RightTriple
            | TokenKind::RightTripleTerm
            | TokenKind::RightAnnotation
    )
}

/// Brackets that are open while tokens are skipped.
#[derive(Debug, Default)]
struct Open {
    /// Of each, whether it is a brace.
    list: Vec<bool>,
    braces: usize,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn has_brace(&self) -> bool {
        self.braces > 0
    }

    fn push(&mut self, is_brace: bool) {
        self.list.push(is_brace);
        self.braces += usize::from(is_brace);
    }

    /// Closes a bracket that is no brace; not through a brace.
    fn close(&mut self) {
        if self.list.last() == Some(&false) {
            self.list.pop();
        }
    }

    /// Closes a brace, and what is open inside of it.
    fn close_brace(&mut self) {
        while let Some(is_brace) = self.list.pop() {
            if is_brace {
                self.braces -= 1;
                return;
            }
        }
    }
}

/// The clauses behind a `WHERE`.
fn begins_clause(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Keyword(
            Keyword::Group
                | Keyword::Having
                | Keyword::Order
                | Keyword::Limit
                | Keyword::Offset
                | Keyword::Values
        )
    )
}

impl Parser<'_, '_> {
    /// Whether a bracket surely ends here though nothing closes it: at the end of the text, which
    /// is where one types, and others than braces before what stands in braces only. A tolerant
    /// reader keeps what is in it.
    pub(super) fn ends_bracket(&self, closing: TokenKind) -> bool {
        let kind = self.token.kind;
        kind == TokenKind::End
            || closing != TokenKind::RightBrace
                && (matches!(
                    kind,
                    TokenKind::LeftBrace
                        | TokenKind::RightBrace
                        | TokenKind::Keyword(Keyword::Where | Keyword::From)
                ) || begins_element(kind))
    }

    /// Keeps the error, and tells the brackets that the failed rule left open beyond a depth.
    fn begin_recovery(&mut self, failure: Failure, depth: usize) -> Parsed<Open> {
        self.report(failure)?;
        let mut open = Open::default();
        for it in self.opened.get(depth..).unwrap_or_default() {
            open.push(it.bracket == "{");
        }
        self.opened.truncate(depth);
        Ok(open)
    }

    /// In a group: behind the next dot, or at the next element, or at the group's end.
    pub(super) fn recover_in_group(&mut self, failure: Failure, depth: usize) -> Parsed<()> {
        let mut open = self.begin_recovery(failure, depth)?;
        let start = self.token.start;
        loop {
            let kind = self.token.kind;
            let is_first = self.token.start == start;
            let has_brace = open.has_brace();
            match kind {
                TokenKind::End => break,
                TokenKind::RightBrace => {
                    open.close_brace();
                    if !has_brace {
                        break;
                    }
                    if open.is_empty() {
                        self.bump();
                        // The other branches of a union are groups by themselves, then.
                        if self.token.kind == TokenKind::Keyword(Keyword::Union) {
                            self.bump();
                        }
                        break;
                    }
                }
                TokenKind::Dot if open.is_empty() => {
                    self.bump();
                    break;
                }
                kind if begins_element(kind) && !has_brace && !is_first => break,
                kind if closes(kind) => open.close(),
                kind => opens(kind).into_iter().for_each(|it| open.push(it)),
            }
            self.bump();
        }
        Ok(())
    }

    /// Behind the bracket that closes what the failed rule opened, or before what cannot stand in
    /// it.
    pub(super) fn recover_behind_bracket(&mut self, failure: Failure, depth: usize) -> Parsed<()> {
        let mut open = self.begin_recovery(failure, depth)?;
        if open.is_empty() {
            return Ok(());
        }
        loop {
            let kind = self.token.kind;
            match kind {
                TokenKind::End => break,
                TokenKind::RightBrace if !open.has_brace() => break,
                TokenKind::RightBrace => open.close_brace(),
                kind if begins_element(kind) && !open.has_brace() => break,
                kind if closes(kind) => {
                    open.close();
                    if open.is_empty() {
                        self.bump();
                        break;
                    }
                }
                kind => opens(kind).into_iter().for_each(|it| open.push(it)),
            }
            self.bump();
        }
        Ok(())
    }

    /// Behind a `WHERE`: at the next clause, or at the end.
    pub(super) fn recover_in_clauses(&mut self, failure: Failure, depth: usize) -> Parsed<()> {
        let mut open = self.begin_recovery(failure, depth)?;
        loop {
            match self.token.kind {
                TokenKind::End => return Ok(()),
                TokenKind::RightBrace if !open.has_brace() => return Ok(()),
                TokenKind::RightBrace => open.close_brace(),
                kind if begins_clause(kind) && !open.has_brace() => return Ok(()),
                kind if opens(kind) == Some(true) => open.push(true),
                _ => {}
            }
            self.bump();
        }
    }

    /// In the columns of a `SELECT`: at the next column, or where the clause ends.
    pub(super) fn recover_in_columns(&mut self, failure: Failure) -> Parsed<()> {
        self.report(failure)?;
        let start = self.token.start;
        loop {
            match self.token.kind {
                TokenKind::End
                | TokenKind::LeftBrace
                | TokenKind::RightBrace
                | TokenKind::Keyword(Keyword::Where | Keyword::From) => return Ok(()),
                TokenKind::Variable | TokenKind::LeftParen if self.token.start != start => {
                    return Ok(());
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// In an update: at the `;` before the next operation.
    pub(super) fn recover_in_update(&mut self, failure: Failure) -> Parsed<()> {
        let mut open = self.begin_recovery(failure, 0)?;
        loop {
            match self.token.kind {
                TokenKind::End => return Ok(()),
                TokenKind::Semicolon if !open.has_brace() => return Ok(()),
                TokenKind::RightBrace => open.close_brace(),
                kind if opens(kind) == Some(true) => open.push(true),
                _ => {}
            }
            self.bump();
        }
    }
}
