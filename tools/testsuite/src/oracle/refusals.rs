//! The comparable form of refused queries.

/// What stands before an error in what is told.
pub(super) const REFUSED: &str = "refused: ";

pub(super) fn message(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_default()
}
