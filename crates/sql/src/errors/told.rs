//! A message for users in place of an engine's error: code, text and hint.

use crate::SqlState;

/// What a user is told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) state: SqlState,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Told {
    pub(super) fn new(state: SqlState, message: impl Into<String>) -> Self {
        Self {
            state,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn unsupported(what: impl AsRef<str>) -> Self {
        let message = format!("{} is not supported", what.as_ref());
        Self::new(SqlState::FeatureNotSupported, message)
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
