//! The sink for terms of a statement whose literal is streamed to a file.

use crate::ingest::interner::{Interner, LocalId};
use crate::ingest::large_literals::StagedText;
use crate::parse::ntriples::TermSink;
use orrery_term::{Direction, directional_key, language_key, string_key, typed_key};
use std::borrow::Cow;

/// Hands terms on to an interner, and in place of the first literal the text in the file: a
/// statement has one literal at most, be it within a triple term.
pub(crate) struct StagedSink<'a> {
    interner: &'a mut Interner,
    text: Option<StagedText>,
}

/// A literal that is to be taken.
enum Taken {
    /// As the parser gave it, or with this text in its place.
    Short(Option<String>),
    Long(StagedText),
}

impl<'a> StagedSink<'a> {
    pub(crate) fn new(interner: &'a mut Interner, text: Option<StagedText>) -> Self {
        Self { interner, text }
    }

    /// The literal whose key without its text has so many bytes. What was escaped may turn out
    /// short.
    fn literal(&mut self, head_bytes: usize) -> Taken {
        let Some(text) = self.text.take() else {
            return Taken::Short(None);
        };
        if self.interner.is_large(head_bytes as u64 + text.bytes()) {
            return Taken::Long(text);
        }
        match text.read() {
            Ok(text) => Taken::Short(Some(text)),
            Err(error) => {
                self.interner.fail(error);
                Taken::Short(None)
            }
        }
    }

    /// A literal without datatype: `short` interns one that is not long.
    fn text_term(
        &mut self,
        lexical: &str,
        head: Vec<u8>,
        short: impl FnOnce(&mut Interner, &str) -> LocalId,
    ) -> LocalId {
        match self.literal(head.len()) {
            Taken::Short(text) => short(self.interner, text.as_deref().unwrap_or(lexical)),
            Taken::Long(text) => self.interner.staged_literal(head, text),
        }
    }
}

/// A key without its text.
fn head(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut head = Vec::new();
    write(&mut head);
    head
}

impl TermSink for StagedSink<'_> {
    type Id = LocalId;

    fn iri(&mut self, iri: &str) -> Result<LocalId, Cow<'static, str>> {
        self.interner.iri(iri)
    }

    fn blank_node(&mut self, label: &str) -> LocalId {
        self.interner.blank_node(label)
    }

    fn string(&mut self, lexical: &str) -> LocalId {
        let head = head(|head| string_key("", head));
        self.text_term(lexical, head, |interner, lexical| interner.string(lexical))
    }

    fn language(&mut self, lexical: &str, tag: &str) -> LocalId {
        let head = head(|head| language_key("", tag, head));
        self.text_term(lexical, head, |interner, lexical| {
            interner.language(lexical, tag)
        })
    }

    fn language_tag(&mut self, tag: &str) {
        self.interner.language_tag(tag);
    }

    fn directional(&mut self, lexical: &str, tag: &str, direction: Direction) -> LocalId {
        let head = head(|head| directional_key("", tag, direction, head));
        self.text_term(lexical, head, |interner, lexical| {
            interner.directional(lexical, tag, direction)
        })
    }

    fn triple(
        &mut self,
        subject: LocalId,
        predicate: LocalId,
        object: LocalId,
    ) -> Result<LocalId, Cow<'static, str>> {
        self.interner.triple(subject, predicate, object)
    }

    fn typed(&mut self, lexical: &str, datatype: &str) -> Result<LocalId, Cow<'static, str>> {
        let head = head(|head| typed_key("", datatype, head));
        match self.literal(head.len()) {
            Taken::Short(text) => {
                let lexical = text.as_deref().unwrap_or(lexical);
                self.interner.typed(lexical, datatype)
            }
            Taken::Long(text) => {
                self.interner.check_datatype(datatype)?;
                Ok(self.interner.staged_literal(head, text))
            }
        }
    }

    fn quad(
        &mut self,
        subject: LocalId,
        predicate: LocalId,
        object: LocalId,
        graph: Option<LocalId>,
    ) {
        self.interner.quad(subject, predicate, object, graph);
    }
}
