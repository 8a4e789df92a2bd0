//! IRIs in statements.

use crate::{Error, Result, SqlState};

/// Fails where a text cannot stand between `<` and `>`.
pub(crate) fn require_iri(text: &str) -> Result<()> {
    let is_wrong = |c: char| c <= ' ' || "<>\"{}|\\^`".contains(c);
    let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| {
        let mut signs = scheme.chars();
        signs
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic())
            && signs.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    match has_scheme && !text.contains(is_wrong) {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::InvalidParameterValue,
            format!("{text:?} is no absolute IRI"),
        )),
    }
}
