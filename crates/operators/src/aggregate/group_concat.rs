//! `GROUP_CONCAT`: concatenation of strings with a separator. The result is a simple literal
//! (SPARQL 1.1, 18.5.1.7) even if all strings have the same language tag, unlike that of `CONCAT`.
//!
//! Other literals and IRIs are joined as `STR` gives them. By the definition they are errors of
//! `CONCAT`, which an engine may give a meaning (17.3.1), and all do. A blank node or a triple term
//! is an error, which makes the group's result unbound.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion_common::Result;
use orrery_expressions::Value;
use orrery_expressions::columns::{Operand, Reading, read_ids};
use orrery_term::{Term, TermId};

use super::groups::{Aggregate, engine, ids_of};
use crate::context::QueryContext;

/// A text of so many bytes does not double when it grows, but takes one more part of so many.
const LARGE_TEXT_BYTES: usize = 1 << 20;
const GROWTH_PART: usize = 8;

/// `GROUP_CONCAT`.
#[derive(Clone)]
pub(super) struct GroupConcat {
    pub(super) separator: Arc<str>,
    pub(super) context: Arc<QueryContext>,
}

/// The text so far.
#[derive(Default)]
pub(super) enum JoinedText {
    /// Nothing seen.
    #[default]
    Empty,
    /// Some texts.
    Joined(String),
    /// An error was among the values.
    Failed,
}

impl GroupConcat {
    fn append(&self, state: &mut JoinedText, more: &str) {
        match state {
            JoinedText::Failed => {}
            JoinedText::Empty => *state = JoinedText::Joined(more.to_owned()),
            JoinedText::Joined(text) => {
                let more_bytes = self.separator.len() + more.len();
                if text.len() + more_bytes > text.capacity() && text.len() >= LARGE_TEXT_BYTES {
                    // Twice as large it would not be counted before it is there.
                    text.reserve_exact(more_bytes.max(text.len() / GROWTH_PART));
                }
                text.push_str(&self.separator);
                text.push_str(more);
            }
        }
    }
}

impl Aggregate for GroupConcat {
    type State = JoinedText;
    type Rows = Operand;

    fn read(&self, columns: &[ArrayRef]) -> Result<Operand> {
        read_ids(
            &ids_of(columns, 0)?,
            Reading::Written,
            self.context.expressions(),
        )
        .map_err(engine)
    }

    fn update(&self, state: &mut JoinedText, rows: &Operand, row: usize) {
        match rows.get(row).and_then(Value::lexical) {
            Some(text) => self.append(state, &text),
            None => *state = JoinedText::Failed,
        }
    }

    fn merge(&self, state: &mut JoinedText, other: JoinedText) {
        match other {
            JoinedText::Empty => {}
            JoinedText::Failed => *state = JoinedText::Failed,
            JoinedText::Joined(text) => self.append(state, &text),
        }
    }

    fn result(&self, state: &JoinedText) -> Result<Option<TermId>> {
        let text = match state {
            JoinedText::Failed => return Ok(None),
            JoinedText::Empty => "",
            JoinedText::Joined(text) => text,
        };
        let id = self.context.expressions().intern(&Term::string(text));
        id.map(Some).map_err(engine)
    }

    fn write(&self, state: &JoinedText, out: &mut Vec<u8>) {
        match state {
            JoinedText::Empty => {}
            JoinedText::Failed => out.push(0),
            JoinedText::Joined(text) => {
                out.push(1);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<JoinedText> {
        Some(match bytes {
            [] => JoinedText::Empty,
            [0] => JoinedText::Failed,
            [_, text @ ..] => JoinedText::Joined(std::str::from_utf8(text).ok()?.to_owned()),
        })
    }

    fn heap_bytes(&self, state: &JoinedText) -> usize {
        match state {
            JoinedText::Joined(text) => text.capacity(),
            JoinedText::Empty | JoinedText::Failed => 0,
        }
    }
}
