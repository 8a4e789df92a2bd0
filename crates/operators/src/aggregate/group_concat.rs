//! `GROUP_CONCAT`: strings one after another, with a separator between. The result is a simple literal
//! (SPARQL 1.1, 18.5.1.7) even if all strings have the same language tag, unlike that of `CONCAT`.
//!
//! Other literals and IRIs are joined as `STR` gives them. By the definition they are errors of `CONCAT`, which an engine may
//! give a meaning (17.3.1), and all do. A blank node or a triple term is an error, which makes the group's result unbound.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion_common::Result;
use orrery_expressions::Value;
use orrery_expressions::columns::{Operand, Reading, intern_value, read_ids};
use orrery_term::TermId;

use super::groups::{Aggregate, engine, ids_of};
use crate::context::QueryContext;

/// `GROUP_CONCAT`.
#[derive(Clone)]
pub(super) struct GroupConcat {
    pub(super) separator: Arc<str>,
    pub(super) context: Arc<QueryContext>,
}

/// The text so far.
#[derive(Default)]
pub(super) enum Text {
    /// Nothing seen.
    #[default]
    Empty,
    /// Some texts.
    Joined(String),
    /// An error was among the values.
    Failed,
}

impl GroupConcat {
    fn append(&self, state: &mut Text, more: &str) {
        match state {
            Text::Failed => {}
            Text::Empty => *state = Text::Joined(more.to_owned()),
            Text::Joined(text) => {
                text.push_str(&self.separator);
                text.push_str(more);
            }
        }
    }
}

impl Aggregate for GroupConcat {
    type State = Text;
    type Rows = Operand;

    fn read(&self, columns: &[ArrayRef]) -> Result<Operand> {
        read_ids(
            &ids_of(columns, 0)?,
            Reading::Written,
            self.context.expressions(),
        )
        .map_err(engine)
    }

    fn update(&self, state: &mut Text, rows: &Operand, row: usize) {
        match rows.get(row).and_then(Value::lexical) {
            Some(text) => self.append(state, &text),
            None => *state = Text::Failed,
        }
    }

    fn merge(&self, state: &mut Text, other: Text) {
        match other {
            Text::Empty => {}
            Text::Failed => *state = Text::Failed,
            Text::Joined(text) => self.append(state, &text),
        }
    }

    fn result(&self, state: &Text) -> Result<Option<TermId>> {
        let value = match state {
            Text::Failed => return Ok(None),
            Text::Empty => Value::string(""),
            Text::Joined(text) => Value::string(text.as_str()),
        };
        intern_value(&value, self.context.expressions())
            .map(Some)
            .map_err(engine)
    }

    fn write(&self, state: &Text, out: &mut Vec<u8>) {
        match state {
            Text::Empty => {}
            Text::Failed => out.push(0),
            Text::Joined(text) => {
                out.push(1);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<Text> {
        Some(match bytes {
            [] => Text::Empty,
            [0] => Text::Failed,
            [_, text @ ..] => Text::Joined(std::str::from_utf8(text).ok()?.to_owned()),
        })
    }

    fn heap_bytes(&self, state: &Text) -> usize {
        match state {
            Text::Joined(text) => text.capacity(),
            Text::Empty | Text::Failed => 0,
        }
    }
}
