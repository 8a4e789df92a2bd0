//! `GROUP_CONCAT`: strings one after another, with a separator between. Like `CONCAT`, the result
//! keeps a language tag that all of them have, and a value that is no string is an error, which makes
//! the group's result unbound.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion_common::Result;
use orrery_term::TermId;

use super::groups::{Aggregate, engine, ids_of, split_u64};
use crate::context::QueryContext;
use crate::expression::column::{Operand, Reading, intern_value, read_ids};
use crate::expression::value::Value;

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
    /// Some texts; the language if all have the same.
    Joined {
        text: String,
        language: Option<Box<str>>,
    },
    /// An error was among the values.
    Failed,
}

impl GroupConcat {
    fn append(&self, state: &mut Text, more: &str, more_language: Option<&str>) {
        match state {
            Text::Failed => {}
            Text::Empty => {
                *state = Text::Joined {
                    text: more.to_owned(),
                    language: more_language.map(Box::from),
                };
            }
            Text::Joined { text, language } => {
                text.push_str(&self.separator);
                text.push_str(more);
                if language.as_deref() != more_language {
                    *language = None;
                }
            }
        }
    }
}

impl Aggregate for GroupConcat {
    type State = Text;
    type Rows = Operand;

    fn read(&self, columns: &[ArrayRef]) -> Result<Operand> {
        read_ids(&ids_of(columns, 0)?, Reading::Value, &self.context).map_err(engine)
    }

    fn update(&self, state: &mut Text, rows: &Operand, row: usize) {
        match rows.get(row).and_then(Value::as_text) {
            Some((text, language)) => self.append(state, text, language),
            None => *state = Text::Failed,
        }
    }

    fn merge(&self, state: &mut Text, other: Text) {
        match other {
            Text::Empty => {}
            Text::Failed => *state = Text::Failed,
            Text::Joined { text, language } => self.append(state, &text, language.as_deref()),
        }
    }

    fn result(&self, state: &Text) -> Result<Option<TermId>> {
        let value = match state {
            Text::Failed => return Ok(None),
            Text::Empty => Value::string(""),
            Text::Joined { text, language } => Value::text(text.as_str(), language.as_deref()),
        };
        intern_value(&value, &self.context)
            .map(Some)
            .map_err(engine)
    }

    fn write(&self, state: &Text, out: &mut Vec<u8>) {
        match state {
            Text::Empty => {}
            Text::Failed => out.push(0),
            Text::Joined { text, language } => {
                let language = language.as_deref().unwrap_or_default();
                out.extend_from_slice(&(language.len() as u64).to_le_bytes());
                out.extend_from_slice(language.as_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<Text> {
        Some(match bytes {
            [] => Text::Empty,
            [_] => Text::Failed,
            bytes => {
                let (length, rest) = split_u64(bytes)?;
                let (language, text) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                Text::Joined {
                    text: std::str::from_utf8(text).ok()?.to_owned(),
                    language: (!language.is_empty())
                        .then(|| std::str::from_utf8(language).ok().map(Box::from))
                        .flatten(),
                }
            }
        })
    }

    fn heap_bytes(&self, state: &Text) -> usize {
        match state {
            Text::Joined { text, .. } => text.capacity(),
            Text::Empty | Text::Failed => 0,
        }
    }
}
