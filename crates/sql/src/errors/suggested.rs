//! The suggestion of a similar function for an unknown name.
//!
//! The library suggests the one whose name is changed least to become the other, of several as near
//! the one that a table of hashes gives first: another with each process. Here it is the first by
//! the alphabet.

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::execution::SessionState;

use crate::{Error, SqlState};

/// An error with the function that is suggested, where it is about one that is not there.
pub(crate) fn with_suggestion(mut error: Error, state: &SessionState) -> Error {
    if error.state != SqlState::UndefinedFunction || error.hint.is_none() {
        return error;
    }
    let name = error.message.strip_prefix("function ");
    if let Some(name) = name.and_then(|rest| rest.strip_suffix(" does not exist")) {
        error.hint = nearest(&name.to_lowercase(), state).map(|it| format!("Did you mean '{it}'?"));
    }
    error
}

fn nearest<'s>(name: &str, state: &'s SessionState) -> Option<&'s str> {
    let scalar = state.scalar_functions().keys();
    let aggregate = state.aggregate_functions().keys();
    let window = state.window_functions().keys();
    let all = scalar.chain(aggregate).chain(window).map(String::as_str);
    all.min_by_key(|known| (levenshtein(&known.to_lowercase(), name), *known))
}
