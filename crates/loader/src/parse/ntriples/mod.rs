//! The fast path for N-Triples and N-Quads, of RDF 1.2: with triple terms, base directions and
//! versions.
//!
//! A block of whole lines goes in, terms and quads come out through a
//! [`TermSink`]. The parser copies nothing unless a term has escapes: it cuts terms with `memchr`
//! and hands out slices of the block.
//!
//! It is as strict as `oxttl` 0.2.5, which is its oracle in the tests: for any bytes both yield the
//! same quads or both refuse, but for lines like `VERSION "1.2"`, which it does not know, and
//! triple terms nested beyond our limit. What is *not* checked here but by the sink is whether an
//! IRI is valid ([`check_iri`]): a sink that interns its terms has to look at each distinct IRI
//! only once, and that is most of the time of a general parser.
//!
//! Cost: about 100 ns a line besides the sink.

mod escape;
mod iri;
mod parser;

pub(crate) use escape::decode_escape;
pub(crate) use iri::check_iri;
pub(crate) use parser::parse_block;

use orrery_term::Direction;
use std::borrow::Cow;
use std::ops::Range;

/// Receives the terms of each statement, then the statement itself.
///
/// A term that was handed over may belong to a statement that turns out to be wrong; then no
/// `quad` follows.
pub(crate) trait TermSink {
    /// How the sink names a term.
    type Id: Copy;

    /// Takes an IRI, which the sink must check with [`check_iri`] unless it knows it already.
    fn iri(&mut self, iri: &str) -> Result<Self::Id, Cow<'static, str>>;
    /// Takes a blank node by its label, which holds for the whole file.
    fn blank_node(&mut self, label: &str) -> Self::Id;
    /// Takes an `xsd:string`.
    fn string(&mut self, lexical: &str) -> Self::Id;
    /// Takes a language-tagged string; the tag is valid and in lower case.
    fn language(&mut self, lexical: &str, tag: &str) -> Self::Id;
    /// Notes how a language tag is written; at least once for each way.
    fn language_tag(&mut self, _written: &str) {}
    /// Takes a language-tagged string with a base direction; the tag as in [`Self::language`].
    fn directional(&mut self, lexical: &str, tag: &str, direction: Direction) -> Self::Id;
    /// Takes a triple term of terms taken before: an IRI or a blank node, an IRI, any term.
    fn triple(
        &mut self,
        subject: Self::Id,
        predicate: Self::Id,
        object: Self::Id,
    ) -> Result<Self::Id, Cow<'static, str>>;
    /// Takes a literal of any other datatype, whose IRI the sink must check as in [`Self::iri`].
    fn typed(&mut self, lexical: &str, datatype: &str) -> Result<Self::Id, Cow<'static, str>>;
    /// Takes a statement; no graph is the default graph.
    fn quad(
        &mut self,
        subject: Self::Id,
        predicate: Self::Id,
        object: Self::Id,
        graph: Option<Self::Id>,
    );
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineError {
    /// The offending bytes of the block.
    pub(crate) span: Range<usize>,
    /// What was expected, for people.
    pub(crate) message: Cow<'static, str>,
}

impl LineError {
    pub(crate) fn new(span: Range<usize>, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            span,
            message: message.into(),
        }
    }
}

/// Whether to go on with the next line after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterError {
    /// Skip to the next line.
    Skip,
    /// Leave the rest of the block.
    Stop,
}

#[cfg(test)]
mod tests;
