//! The parts of a request: its body, its parameters, its conditions, the formats that it accepts.

pub(crate) mod body;
pub(crate) mod conditions;
pub(crate) mod documents;
pub(crate) mod form_parts;
pub(crate) mod media_type;
pub(crate) mod min_commit;
pub(crate) mod multipart_form;
pub(crate) mod negotiate;
pub(crate) mod parameters;
pub(crate) mod passed_over;
pub(crate) mod protocol;
