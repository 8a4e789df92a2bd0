//! The encoding of a query's shared context, without the process's part.

use std::sync::Arc;

use datafusion_execution::memory_pool::MemoryPool;
use orrery_storage::Snapshot;
use orrery_term::{LanguageTags, Term, TermId, parse_key, write_key};
use serde::{Deserialize, Serialize};

use super::error::CodecError;
use crate::context::{BlankNodeNumbers, ExpressionContext, ExpressionOptions};

/// A context as a description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextText {
    base_iri: Option<String>,
    /// What `NOW()` gives everywhere.
    now: String,
    /// The terms that no dictionary knows, in the order of their numbers.
    own_terms: Vec<TermKeyText>,
    /// How the query writes language tags.
    language_tags: Vec<String>,
    /// The numbers of blank nodes that all parts of the plan share.
    blank_nodes: BlankNodeNumbers,
    /// How many other processes run parts of the plan.
    parts: u32,
    is_order_of_rows_seen: bool,
}

/// The key of a term, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TermKeyText(String);

impl TermKeyText {
    /// The key of a term.
    pub fn of(term: &Term<'_>) -> Self {
        let mut key = Vec::new();
        write_key(term, &mut key);
        Self::of_key(&key)
    }

    fn of_key(key: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |half: u8| char::from(DIGITS[usize::from(half & 15)]);
        let digits = key.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]);
        Self(digits.collect())
    }

    /// The term.
    pub fn to_term(&self) -> Result<Term<'static>, CodecError> {
        let wrong = || CodecError::damaged(format!("{:?} is no key of a term", self.0));
        let digits: Option<Vec<u8>> = self
            .0
            .chars()
            .map(|digit| Some(digit.to_digit(16)? as u8))
            .collect();
        let digits = digits.ok_or_else(wrong)?;
        let (bytes, rest) = digits.as_chunks::<2>();
        let key: Vec<u8> = bytes.iter().map(|[high, low]| high << 4 | low).collect();
        let term = parse_key(&key).map_err(|_| wrong())?.into_owned();
        match rest.is_empty() {
            true => Ok(term),
            false => Err(wrong()),
        }
    }
}

impl ContextText {
    /// The description of a context, for so many other processes. From now on the context takes
    /// only its own share of the numbers of blank nodes; it must not run yet.
    pub fn of(context: &ExpressionContext, parts: u32) -> Result<Self, CodecError> {
        let blank_nodes = context.deal_blank_nodes(parts).ok_or_else(|| {
            CodecError::CannotTravel(format!(
                "a plan for {parts} more processes, of which each makes blank nodes,"
            ))
        })?;
        let tags = context.noted_language_tags();
        let mut own_terms = Vec::new();
        context.own_terms(|key| own_terms.push(TermKeyText::of_key(key)));
        Ok(Self {
            base_iri: context.base_iri().map(|iri| iri.as_str().to_owned()),
            now: context.now().to_string(),
            own_terms,
            language_tags: tags.iter().map(ToOwned::to_owned).collect(),
            blank_nodes,
            parts,
            is_order_of_rows_seen: context.depends_on_row_order(),
        })
    }

    /// The number of the query's own terms.
    pub fn own_terms(&self) -> u64 {
        self.own_terms.len() as u64
    }

    /// The context where one of the parts runs; the parts are counted from 1, and what described
    /// the context is 0.
    pub fn build(
        &self,
        snapshot: Arc<Snapshot>,
        memory_pool: Arc<dyn MemoryPool>,
        part: u32,
    ) -> Result<Arc<ExpressionContext>, CodecError> {
        let now = self.now.parse();
        let now = now.map_err(|_| CodecError::damaged(format!("{:?} is no time", self.now)))?;
        let options = ExpressionOptions {
            base_iri: self.base_iri.clone(),
            memory_pool,
            now: Some(now),
        };
        let blank_nodes = self.blank_nodes.share(part, self.parts);
        let blank_nodes = blank_nodes
            .ok_or_else(|| CodecError::damaged("there are no such numbers of blank nodes"))?;
        let context = ExpressionContext::with_blank_nodes(snapshot, options, blank_nodes)?;
        for (number, key) in (0..).zip(&self.own_terms) {
            let term = key.to_term()?;
            if context.intern(&term)? != TermId::query_local(number) {
                return Err(CodecError::damaged(format!(
                    "{term} is not term {number} of the query here"
                )));
            }
        }
        let tags: LanguageTags = self.language_tags.iter().map(String::as_str).collect();
        context.note_language_tags(&tags);
        if self.is_order_of_rows_seen {
            context.note_volatile();
        }
        Ok(context)
    }
}
