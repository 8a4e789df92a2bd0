//! RDF terms, and their 64-bit ids.
//!
//! Everything above this crate moves terms around as [`TermId`]s: eight bytes,
//! a kind in the top four bits and a payload in the other sixty. Numbers, dates,
//! booleans, short strings and blank nodes live inside the id ([`mod@inline`]);
//! every other term stands in the dictionary under its *term key* ([`key`]), and
//! the id holds its rank there.
//!
//! Two rules hold everywhere:
//!
//! 1. **Identity is exact.** Equal ids mean the same RDF term, and the same term
//!    always gets the same id. A literal is kept inside the id only if its
//!    lexical form can be rebuilt to the letter: `"1"^^xsd:integer` is inline,
//!    `"01"^^xsd:integer` is another term and goes to the dictionary.
//! 2. **Order is useful.** Within a kind, the order of ids is the order of values
//!    (numbers, dates, short strings) or of term keys (dictionary).
//!
//! The crate knows nothing of files, and allocates only for text.

mod id;
pub mod inline;
pub mod key;
pub mod language;
pub mod lexical;
pub mod names;
pub mod nesting;
pub mod prefixes;
mod term;
pub mod vocabulary;
mod xml_elements;

pub use id::{TermId, TermKind};
pub use inline::{InlineValue, inline, inline_string, inline_typed};
pub use key::{
    KeyError, directional_key, iri_key, language_key, parse_key, string_key, typed_key, write_key,
};
pub use language::LanguageTags;
pub use prefixes::{PrefixChange, PrefixError, PrefixOrigin, Prefixes, Shortener};
pub use term::{Direction, Literal, LiteralKind, TRIPLE_DEPTH_MAX, Term, Triple, TripleError};
