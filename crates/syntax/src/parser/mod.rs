//! Recursive descent over the tokens: one token of look-ahead, here and there a second (behind `[`,
//! a sign, a predicate, `DELETE`), no way back but at a `<` behind an operand, which is read again
//! as a sign.
//!
//! Each rule of the grammar is a method. It either takes what is its own or fails with the error
//! that says so; where the reader is tolerant, [`recover`] catches the failure at the next place
//! where the grammar surely goes on, keeps the error, and leaves a hole. Brackets recurse, bounded
//! by [`Limits`](crate::Limits); chains of operators and lists of any kind are loops.
//!
//! What the parser tests for at a token is what may stand there, and is collected on the way
//! ([`ExpectedSet`]).

mod aggregates;
mod assigned;
mod call;
mod diagnose;
mod edge_weight;
mod expression;
mod group;
mod lateral;
mod literal;
mod mend;
mod modifiers;
mod path;
mod paths;
mod query;
mod recover;
mod select;
mod triples;
mod update;
mod weight;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use oxiri::Iri;
use spargebra::term::{BlankNode, Variable};

use crate::error::{ErrorKind, Hint, Position, SyntaxError};
use crate::expected::{ExpectedSet, Thing};
use crate::lexer::Lexer;
use crate::names::{Fresh, Names, Scope, VariableId};
use crate::options::{ParserOptions, Shape};
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

pub(crate) use diagnose::closing;
pub use literal::{is_plain_iri, string_of};

/// Why a rule failed. In a box, for it passes through many hands.
pub(crate) type Failure = Box<SyntaxError>;
pub(crate) type Parsed<T> = Result<T, Failure>;

/// Errors that a tolerant reader keeps; at the next it gives up.
const ERRORS_MAX: usize = 100;
/// Bytes that copies of terms and paths may take, whatever the text,
const COPIED_BYTES_MAX: usize = 32 << 20;
/// and for each of its bytes: lists of objects with long subjects stay far below it.
const COPIED_BYTES_OF_EACH: usize = 128;
/// Tokens between two checks whether somebody still waits: about a tenth of a millisecond of work.
const TOKENS_PER_LOOK: u32 = 1 << 10;
/// Characters of what is found that a message repeats.
const FOUND_CHARACTERS_MAX: usize = 40;

/// Where aggregates can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregates {
    Allowed,
    Inside,
    No,
}

/// An opened bracket.
#[derive(Clone, Copy, Debug)]
struct Opened {
    bracket: &'static str,
    at: u32,
}

/// A prefix that the text declares, or that was assumed for it.
#[derive(Debug)]
struct Prefix {
    iri: String,
    /// Whether plain names put behind it always make a valid IRI.
    takes_plain_names: bool,
}

/// The state of reading one text.
pub(crate) struct Parser<'t, 'o> {
    text: &'t str,
    options: &'o ParserOptions<'o>,
    lexer: Lexer<'t>,
    token: Token,
    /// Tokens that were taken.
    taken: u32,
    /// The token before, for messages.
    previous: Token,
    expected: ExpectedSet,
    /// What may stand at the end of the text, once something failed there.
    expected_at_end: Option<ExpectedSet>,
    opened: Vec<Opened>,
    shape: Shape,
    /// The most of the operations before, if this is an update.
    operators_before: usize,
    /// Bytes that copies of terms and paths take, and IRIs beside what the text has of them.
    copied: usize,

    base: Option<Iri<String>>,
    prefixes: HashMap<&'t str, Prefix, FixedState>,
    names: Names<'t>,
    scope: Scope,
    fresh: Fresh,
    /// Variables that an expression of `SELECT` needs a value of, and where they stand.
    free: Vec<(VariableId, Token)>,
    assigned: assigned::Assigned,
    aggregates: Aggregates,
    aggregates_found: aggregates::Found,
    /// Each label's group of patterns.
    labels: HashMap<&'t str, u32, FixedState>,
    /// That which is being read.
    label_group: u32,
    /// The last number of a group of patterns.
    label_groups: u32,
    /// Each label's `INSERT DATA`.
    data_labels: HashMap<&'t str, usize, FixedState>,

    is_tolerant: bool,
    errors: Vec<SyntaxError>,
}

impl<'t, 'o> Parser<'t, 'o> {
    pub(crate) fn new(
        text: &'t str,
        options: &'o ParserOptions<'o>,
        is_tolerant: bool,
    ) -> Parsed<Self> {
        let start = Token {
            kind: TokenKind::End,
            start: 0,
            end: 0,
        };
        let mut parser = Self {
            text,
            options,
            lexer: Lexer::new(text),
            token: start,
            taken: 0,
            previous: start,
            expected: ExpectedSet::default(),
            expected_at_end: None,
            opened: Vec::new(),
            shape: Shape::default(),
            operators_before: 0,
            copied: 0,
            base: None,
            prefixes: HashMap::default(),
            names: Names::default(),
            scope: Scope::default(),
            fresh: Fresh::default(),
            free: Vec::new(),
            assigned: assigned::Assigned::default(),
            aggregates: Aggregates::No,
            aggregates_found: aggregates::Found::default(),
            labels: HashMap::default(),
            label_group: 0,
            label_groups: 0,
            data_labels: HashMap::default(),
            is_tolerant,
            errors: Vec::new(),
        };
        if text.len() >= u32::MAX as usize {
            return Err(parser.error(ErrorKind::TooLong));
        }
        if let Some(base) = options.base {
            let parsed = Iri::parse(base.to_owned());
            parser.base = Some(parsed.map_err(|error| {
                parser.error(ErrorKind::InvalidIri {
                    iri: base.to_owned(),
                    reason: error.to_string(),
                })
            })?);
        }
        parser.token = parser.lexer.next_token();
        Ok(parser)
    }

    /// The size of the largest operation.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            operators: self.shape.operators.max(self.operators_before),
            ..self.shape
        }
    }

    /// Counts anew: operations of an update are trees of their own.
    fn begin_operation(&mut self) {
        self.operators_before = self.shape().operators;
        self.shape.operators = 0;
    }

    pub(crate) fn into_errors(self) -> Vec<SyntaxError> {
        self.errors
    }

    /// What may stand at the end of the text, by the failure that ended the reading, if one did.
    pub(crate) fn expected_at_end(&self, failure: Option<&SyntaxError>) -> ExpectedSet {
        let at_failure = failure.map(|failure| failure.expected);
        self.expected_at_end.or(at_failure).unwrap_or(self.expected)
    }

    pub(crate) fn variables(&self) -> &[&'t str] {
        self.names.all()
    }

    pub(crate) fn declared_prefixes(&self) -> impl Iterator<Item = &'t str> {
        self.prefixes.keys().copied()
    }

    /// Goes on to the next token; returns the one that was here.
    fn bump(&mut self) -> Token {
        self.expected.clear();
        self.previous = self.token;
        self.taken = self.taken.wrapping_add(1);
        if self.taken.is_multiple_of(TOKENS_PER_LOOK) {
            self.look_who_waits();
        }
        self.token = self.lexer.next_token();
        self.previous
    }

    /// Ends the text here if nobody waits for what comes of it.
    #[cold]
    fn look_who_waits(&mut self) {
        if self.options.abandoned.is_some_and(|abandoned| abandoned()) {
            self.lexer = Lexer::starting_at(self.text, self.text.len());
        }
    }

    fn text_of(&self, token: Token) -> &'t str {
        token.text(self.text)
    }

    /// The token behind the next.
    fn second(&self) -> Token {
        let mut lexer = self.lexer;
        lexer.next_token()
    }

    #[inline]
    fn at(&mut self, kind: TokenKind) -> bool {
        self.expected.token(kind);
        self.token.kind == kind
    }

    #[inline]
    fn at_keyword(&mut self, keyword: Keyword) -> bool {
        self.at(TokenKind::Keyword(keyword))
    }

    /// Whether one of these kinds is here, which as a whole are called `thing`.
    #[inline]
    fn at_thing(&mut self, thing: Thing, kinds: impl Fn(TokenKind) -> bool) -> bool {
        self.expected.thing(thing);
        kinds(self.token.kind)
    }

    #[inline]
    fn eat(&mut self, kind: TokenKind) -> bool {
        let is_here = self.at(kind);
        if is_here {
            self.bump();
        }
        is_here
    }

    #[inline]
    fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        self.eat(TokenKind::Keyword(keyword))
    }

    fn expect(&mut self, kind: TokenKind) -> Parsed<Token> {
        match self.at(kind) {
            true => Ok(self.bump()),
            false => Err(self.unexpected()),
        }
    }

    fn expect_keyword(&mut self, keyword: Keyword) -> Parsed<Token> {
        self.expect(TokenKind::Keyword(keyword))
    }

    /// Takes the opening brace of a template or of data; gives how many brackets are open with it.
    fn open_brace(&mut self) -> Parsed<usize> {
        if !self.at(TokenKind::LeftBrace) {
            let previous = self.previous;
            return Err(self.no_bracket("{", previous));
        }
        self.open(TokenKind::LeftBrace, "{")?;
        Ok(self.opened.len())
    }

    /// Takes an opening bracket, and notes it for messages.
    fn open(&mut self, kind: TokenKind, bracket: &'static str) -> Parsed<()> {
        let token = self.expect(kind)?;
        self.opened.push(Opened {
            bracket,
            at: token.start,
        });
        self.shape.nesting = self.shape.nesting.max(self.opened.len());
        if self.opened.len() > self.options.limits.nesting_max {
            let nesting_max = self.options.limits.nesting_max;
            return Err(self.error_at(token, ErrorKind::TooDeep { nesting_max }));
        }
        Ok(())
    }

    fn close(&mut self, kind: TokenKind) -> Parsed<()> {
        if self.at(kind) {
            self.bump();
        } else {
            let failure = self.unclosed();
            if !self.ends_bracket(kind) {
                return Err(failure);
            }
            self.report(failure)?;
        }
        self.opened.pop();
        Ok(())
    }

    /// Counts a part that puts what came before it one level deeper.
    fn deeper(&mut self) -> Parsed<()> {
        self.shape.operators += 1;
        let operators_max = self.options.limits.operators_max;
        if self.shape.operators > operators_max {
            return Err(self.error(ErrorKind::TooManyOperators { operators_max }));
        }
        Ok(())
    }

    /// Counts bytes of a copy that is about to be made: a long term written once may stand for
    /// many.
    fn copies(&mut self, bytes: usize) -> Parsed<()> {
        self.copied = self.copied.saturating_add(bytes);
        let each = self.text.len().saturating_mul(COPIED_BYTES_OF_EACH);
        let bytes_max = COPIED_BYTES_MAX.saturating_add(each);
        if self.copied > bytes_max {
            return Err(self.error_at(self.previous, ErrorKind::TooManyCopies { bytes_max }));
        }
        Ok(())
    }

    /// An error at the token that is here.
    fn error(&self, kind: ErrorKind) -> Failure {
        self.error_at(self.token, kind)
    }

    fn error_at(&self, token: Token, kind: ErrorKind) -> Failure {
        self.error_in(token.start as usize..token.end as usize, kind)
    }

    fn error_in(&self, span: std::ops::Range<usize>, kind: ErrorKind) -> Failure {
        let Position { line, column } = Position::of(self.text, span.start);
        let found = self.text.get(span.clone()).unwrap_or_default();
        Box::new(SyntaxError {
            kind,
            line,
            column,
            found: found.chars().take(FOUND_CHARACTERS_MAX).collect(),
            expected: self.expected,
            hint: None,
            span,
        })
    }

    /// Keeps an error and goes on, where the reader is tolerant and has room for more.
    fn report(&mut self, failure: Failure) -> Parsed<()> {
        if !self.is_tolerant || self.errors.len() >= ERRORS_MAX {
            return Err(failure);
        }
        self.keep(*failure);
        Ok(())
    }

    fn keep(&mut self, error: SyntaxError) {
        if self.token.kind == TokenKind::End && self.expected_at_end.is_none() {
            self.expected_at_end = Some(self.expected);
        }
        self.errors.push(error);
    }

    fn fresh_variable(&mut self) -> Variable {
        Variable::new_unchecked(self.fresh.name(self.text))
    }

    fn fresh_blank_node(&mut self) -> BlankNode {
        BlankNode::new_unchecked(self.fresh.name(self.text))
    }

    /// The name of a variable's token.
    fn variable_name(&self, token: Token) -> &'t str {
        self.text_of(token).get(1..).unwrap_or_default()
    }

    /// Takes a variable; its number and itself.
    fn variable(&mut self) -> Parsed<(VariableId, Variable)> {
        if !self.at_thing(Thing::Variable, |it| it == TokenKind::Variable) {
            return Err(self.no_variable());
        }
        let token = self.bump();
        let name = self.variable_name(token);
        Ok((self.names.id(name), Variable::new_unchecked(name)))
    }
}

impl SyntaxError {
    /// The same, with the likely mend.
    pub(crate) fn with_hint(mut self: Box<Self>, hint: Hint) -> Box<Self> {
        self.hint = Some(hint);
        self
    }
}
