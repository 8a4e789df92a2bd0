//! The errors of requests, by what the caller can do about them.

use std::time::Duration;

/// Why a request has no answer, or its answer no end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The text is no URL that can be asked.
    #[error("<{url}> cannot be asked: {reason}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The allow-list does not permit it.
    #[error("<{url}> is not allowed: {reason}")]
    NotAllowed {
        /// The URL, also one that a redirect led to.
        url: String,
        /// Why.
        reason: String,
    },
    /// No connection, or one that broke.
    #[error("<{url}> cannot be reached: {message}")]
    Unreachable {
        /// The URL.
        url: String,
        /// What the network said.
        message: String,
    },
    /// It took too long.
    #[error("<{url}> did not answer within {} s", limit.as_secs_f64())]
    TimedOut {
        /// The URL.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// The other side answered that it will not, or cannot.
    #[error("<{url}> answered with status {status}{}{message}", if message.is_empty() { "" } else { ": " })]
    Status {
        /// The URL.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The begin of its text.
        message: String,
    },
    /// Redirects without end, or without a place to go to.
    #[error("<{url}> redirects {reason}")]
    Redirect {
        /// The URL that redirected last.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The answer is larger than allowed.
    #[error("the answer of <{url}> is larger than the limit of {limit_bytes} bytes{}", if *is_decompressed { " after decompression" } else { "" })]
    TooLarge {
        /// The URL.
        url: String,
        /// The limit.
        limit_bytes: u64,
        /// Whether the limit is that of the decompressed bytes.
        is_decompressed: bool,
    },
    /// The bytes are not what their headers say.
    #[error("the answer of <{url}> cannot be read: {message}")]
    Content {
        /// The URL.
        url: String,
        /// What is wrong.
        message: String,
    },
    /// The client itself cannot be made.
    #[error("no client for requests to other machines: {message}")]
    Setup {
        /// What is wrong.
        message: String,
    },
}

/// The causes of an error in one line, without repetitions.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
