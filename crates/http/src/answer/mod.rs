//! Answers on their way out: their heads, their rows, warnings and costs beside them, errors.

pub(crate) mod error_response;
pub(crate) mod output;
pub(crate) mod partial;
pub(crate) mod request_times;
pub(crate) mod second_try;
pub(crate) mod stream_body;
pub(crate) mod streamed;
pub(crate) mod warnings;
