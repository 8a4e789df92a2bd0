//! SPARQL's lexer and parser: from text to spargebra's algebra, with messages that help.
//!
//! ```text
//! text --Lexer--> tokens --parser--> Query or Update      spargebra's types, which the planner takes
//!                              '---> SyntaxError          what, where, what may stand there, the likely mend
//! ```
//!
//! The grammar is that of SPARQL 1.1 and 1.2, which is LL(1): recursive descent by hand, with no
//! way back, in time linear in the text. Nesting is bounded, chains of operators and lists are
//! loops ([`Limits`]).
//!
//! - [`parse_query`] and [`parse_update`] are strict: a text is right, or the first error comes
//!   back.
//! - [`read_query`] and [`read_update`] go on behind errors and give what could be read with them.
//! - [`completion`] tells what may stand at a place of a text that is being typed.
//!
//! What it does not do: it knows no data and no functions but the built-in ones, and evaluates
//! nothing.

mod chars;
mod complete;
mod edge_weight;
mod error;
mod expected;
mod lexer;
mod message;
mod names;
mod options;
mod parser;
mod suggest;
mod suggestion;
mod template;
mod token;
mod word;

pub use complete::{Completion, completion};
pub use edge_weight::{WEIGHT_NAMES, WeightStatement, weight_statement, weights_between};
pub use error::{ErrorKind, Hint, Position, Suggestion, SyntaxError};
pub use expected::{Expected, ExpectedSet, Sign, Thing};
pub use lexer::Lexer;
pub use names::is_made_up;
pub use options::{Abandoned, AssumedPrefixes, Limits, ParserOptions, Shape};
pub use parser::{is_plain_iri, string_of};
pub use suggest::distance as letters_apart;
pub use template::template_graph;
pub use token::{Token, TokenKind};
pub use word::{BuiltIn, Keyword};

use parser::Parser;
use spargebra::{Query, Update};

/// What could be read of a text.
#[derive(Clone, Debug)]
pub struct Reading<T> {
    /// The tree, without what could not be read; `None` if its beginning could not.
    pub tree: Option<T>,
    /// The errors, in the order of the text. After a hundred of them the rest is not read.
    pub errors: Vec<SyntaxError>,
}

/// Reads a query. Gives its size with it.
///
/// The tree is as deep as [`Limits`] allow, and what was read until an error is dropped here:
/// whoever allows much needs a thread with a large stack (the default takes 16 MiB), or asks for
/// little first and reads again what is [too deep](ErrorKind::TooDeep) or has
/// [too many operators](ErrorKind::TooManyOperators) for that.
pub fn parse_query(
    text: &str,
    options: &ParserOptions<'_>,
) -> Result<(Query, Shape), Box<SyntaxError>> {
    let mut parser = Parser::new(text, options, false)?;
    let query = parser.query_unit().map_err(SyntaxError::for_people)?;
    Ok((query, parser.shape()))
}

/// Reads an update. Gives its size with it. Needs a stack as [`parse_query`] does.
pub fn parse_update(
    text: &str,
    options: &ParserOptions<'_>,
) -> Result<(Update, Shape), Box<SyntaxError>> {
    let mut parser = Parser::new(text, options, false)?;
    let update = parser.update_unit().map_err(SyntaxError::for_people)?;
    Ok((update, parser.shape()))
}

/// Reads what can be read of a query.
pub fn read_query(text: &str, options: &ParserOptions<'_>) -> Reading<Query> {
    read(text, options, Parser::query_unit)
}

/// Reads what can be read of an update.
pub fn read_update(text: &str, options: &ParserOptions<'_>) -> Reading<Update> {
    read(text, options, Parser::update_unit)
}

fn read<'t, 'o, T>(
    text: &'t str,
    options: &'o ParserOptions<'o>,
    rule: impl FnOnce(&mut Parser<'t, 'o>) -> Result<T, Box<SyntaxError>>,
) -> Reading<T> {
    let mut parser = match Parser::new(text, options, true) {
        Ok(parser) => parser,
        Err(error) => {
            return Reading {
                tree: None,
                errors: vec![*error],
            };
        }
    };
    let result = rule(&mut parser);
    let errors = parser.into_errors().into_iter();
    let mut errors: Vec<SyntaxError> = errors.map(|it| *Box::new(it).for_people()).collect();
    let tree = match result {
        Ok(tree) => Some(tree),
        Err(error) => {
            errors.push(*error.for_people());
            None
        }
    };
    errors.sort_by_key(|error| error.span.start);
    Reading { tree, errors }
}
