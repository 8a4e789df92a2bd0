//! Fixes as text edits, for programs that apply them.

use crate::error::{ErrorKind, Hint, Suggestion, SyntaxError};
use crate::parser::closing;

impl SyntaxError {
    /// The change of the text that the message tells, where it is one and surely the next to make.
    pub fn suggestion(&self) -> Option<Suggestion> {
        let replaced = |text: &str| Suggestion {
            span: self.span.clone(),
            text: text.to_owned(),
        };
        let inserted = |text: String| Suggestion {
            span: self.span.start..self.span.start,
            text,
        };
        match &self.hint {
            Some(Hint::Write(text)) => return Some(replaced(text)),
            Some(Hint::Replace { span, text }) => {
                return Some(Suggestion {
                    span: span.clone(),
                    text: text.clone(),
                });
            }
            Some(Hint::Meant(word)) => return Some(replaced(word)),
            Some(Hint::LeaveOut) => return Some(replaced("")),
            Some(Hint::DeclarePrefix { prefix, iri, at }) => {
                return Some(Suggestion {
                    span: *at..*at,
                    text: format!("PREFIX {prefix}: <{iri}>\n"),
                });
            }
            _ => {}
        }
        match &self.kind {
            ErrorKind::MissingDot => Some(inserted(". ".to_owned())),
            ErrorKind::MissingComma => Some(inserted(", ".to_owned())),
            ErrorKind::MissingSemicolon => Some(inserted("; ".to_owned())),
            ErrorKind::MissingAs if self.hint.is_none() => {
                Some(inserted(match self.names_itself() {
                    true => "AS ".to_owned(),
                    false => " AS ?name".to_owned(),
                }))
            }
            ErrorKind::MissingKeyword { keyword } if self.hint.is_none() => {
                Some(inserted(format!("{keyword} ")))
            }
            // Behind the token before, or in front of what cannot stand in it.
            ErrorKind::UnclosedBracket { bracket, .. } => {
                let closing = closing(bracket);
                Some(inserted(match (self.span.is_empty(), *bracket) {
                    (true, "{") => format!(" {closing}"),
                    (true, _) => closing.to_owned(),
                    (false, _) => format!("{closing} "),
                }))
            }
            _ => None,
        }
    }

    /// Whether a variable stands where its `AS` is missing.
    pub(crate) fn names_itself(&self) -> bool {
        self.found.starts_with(['?', '$'])
    }
}
