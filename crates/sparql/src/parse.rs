//! Parsing of queries to spargebra's algebra by `orrery_syntax`, within bounds.
//!
//! Whatever walks a tree recurses, from the planner to dropping it. What most queries are fits the
//! stack of a runtime's thread ([`Stack::Ordinary`]); a text that turns out to nest deeper, or to
//! have longer chains of operators, is read again and prepared on a thread with a large stack, up
//! to bounds beyond which it is refused with its place.

mod cache;
pub(crate) mod constants;
mod known;
mod shape;
mod substitute;
#[cfg(test)]
mod tests;
mod walk;

pub use cache::ShapeCounts;
pub(crate) use cache::{ReadText, ShapeCache};
pub(crate) use known::KnownShape;
pub(crate) use shape::Constant;

use std::sync::{Arc, Weak};

use orrery_syntax::{ErrorKind, Lexer, Limits, ParserOptions, Shape, SyntaxError, TokenKind};
use orrery_term::Prefixes;
use spargebra::{Query, Update};

use crate::error::QueryError;

/// Nesting and operators that surely fit an ordinary stack.
const ORDINARY: Limits = Limits {
    nesting_max: 8,
    operators_max: 150,
};
/// What fits [`LARGE_STACK_BYTES`].
const LARGE: Limits = Limits {
    nesting_max: 128,
    operators_max: 20_000,
};
/// Stack of the thread that prepares unusual queries; touched only as far as needed.
pub(crate) const LARGE_STACK_BYTES: usize = 512 << 20;

/// Where a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stack {
    /// On any thread.
    Ordinary,
    /// By [`on_large_stack`].
    Large,
}

impl Stack {
    fn limits(self) -> Limits {
        match self {
            Self::Ordinary => ORDINARY,
            Self::Large => LARGE,
        }
    }
}

/// Whether a tree of this size can be walked on any thread.
fn is_ordinary(shape: Shape) -> bool {
    shape.nesting <= ORDINARY.nesting_max && shape.operators <= ORDINARY.operators_max
}

/// Why a text was not read.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is too large for an ordinary stack.
    NeedsLargeStack,
    /// It is wrong.
    Error(QueryError),
}

impl Refused {
    fn of(error: SyntaxError, stack: Stack) -> Self {
        let is_large = matches!(
            error.kind,
            ErrorKind::TooDeep { .. } | ErrorKind::TooManyOperators { .. }
        );
        match is_large && stack == Stack::Ordinary {
            true => Self::NeedsLargeStack,
            false => Self::Error(error.into()),
        }
    }

    /// The error of a text that was read on a large stack.
    pub(crate) fn into_error(self) -> QueryError {
        match self {
            Self::NeedsLargeStack => QueryError::internal("a large stack was not large"),
            Self::Error(error) => error,
        }
    }
}

/// Runs what recurses deeply on a thread with a large stack, and waits for it.
pub(crate) fn on_large_stack<T: Send>(
    name: &str,
    work: impl FnOnce() -> Result<T, QueryError> + Send,
) -> Result<T, QueryError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(LARGE_STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|error| {
                QueryError::internal(format!("no thread for a large request: {error}"))
            })?;
        thread
            .join()
            .unwrap_or_else(|_| Err(QueryError::internal("planning the request panicked")))
    })
}

/// The text without the byte-order mark that some editors put in front.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The words of a text that are keywords, names of functions, or nothing that the grammar knows.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let mut lexer = Lexer::new(text);
    std::iter::from_fn(move || {
        loop {
            let token = lexer.next_token();
            match token.kind {
                TokenKind::End => return None,
                TokenKind::Keyword(_) | TokenKind::BuiltIn(_) | TokenKind::Word => {
                    return Some(token.text(text));
                }
                _ => {}
            }
        }
    })
}

/// Whether a text is short, its brackets, wherever they stand, do not nest deeply, and it names no
/// edge weight, which planning may have to bring up to date: a guess at what preparing it takes, at
/// the price of one look at each byte.
pub(crate) fn looks_small(text: &str, bytes_max: usize) -> bool {
    if text.len() > bytes_max {
        return false;
    }
    let (mut depth, mut nesting) = (0_usize, 0);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'w' | b'W' => {
                const WEIGHT: &[u8] = b"weight";
                let word = text.as_bytes()[place..].get(..WEIGHT.len());
                if word.is_some_and(|word| word.eq_ignore_ascii_case(WEIGHT)) {
                    return false;
                }
            }
            b'{' | b'(' | b'[' => {
                depth += 1;
                nesting = nesting.max(depth);
            }
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    nesting <= ORDINARY.nesting_max
}

pub(crate) fn check_length(what: &str, text: &str, bytes_max: usize) -> Result<(), QueryError> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    Err(QueryError::Syntax {
        message: format!(
            "the {what} has {} bytes, more than the limit of {bytes_max}{}",
            text.len(),
            match what {
                "query" => " (--query-bytes-max)",
                _ => "",
            }
        ),
        line: 1,
        column: 1,
        detail: None,
    })
}

/// What a text is read with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Assumed<'a> {
    /// What relative IRIs are resolved against.
    pub(crate) base_iri: Option<&'a str>,
    /// The prefixes that the text need not declare.
    pub(crate) prefixes: Option<&'a Arc<Prefixes>>,
    /// The reader gives up when no strong reference to this is left. `None` for texts whose parse
    /// is cached.
    pub(crate) waiting: Option<&'a Weak<()>>,
}

impl Assumed<'_> {
    fn read<T>(
        self,
        stack: Stack,
        read: impl FnOnce(&ParserOptions<'_>) -> Result<T, Box<SyntaxError>>,
    ) -> Result<T, Refused> {
        let prefix = |name: &str| self.prefixes?.iri(name).map(str::to_owned);
        let abandoned = || is_abandoned(self.waiting);
        let options = ParserOptions {
            base: self.base_iri,
            prefixes: Some(&prefix),
            // Without prefixes it is to be as the standard has it
            // (`QueryOptions::strict_prefixes`).
            is_standard: self.prefixes.is_none(),
            limits: stack.limits(),
            abandoned: Some(&abandoned),
        };
        read(&options).map_err(|error| Refused::of(*error, stack))
    }
}

/// Whether nobody waits any more, where somebody was known to wait.
pub(crate) fn is_abandoned(waiting: Option<&Weak<()>>) -> bool {
    waiting.is_some_and(|waiting| waiting.strong_count() == 0)
}

/// Parses a query.
pub(crate) fn parse(
    text: &str,
    assumed: Assumed<'_>,
    stack: Stack,
) -> Result<(Query, Shape), Refused> {
    assumed.read(stack, |options| orrery_syntax::parse_query(text, options))
}

/// Parses an update.
pub(crate) fn parse_update(
    text: &str,
    assumed: Assumed<'_>,
    stack: Stack,
) -> Result<Update, Refused> {
    let (update, _) = assumed.read(stack, |options| orrery_syntax::parse_update(text, options))?;
    Ok(update)
}
