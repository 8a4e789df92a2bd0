//! Errors as gRPC statuses, with PostgreSQL's code for clients that know SQL.
//!
//! The code is at the end of the message, and in the trailer `sqlstate`; the place in the text is
//! in the trailer `position`.

use orrery_service::record::Ending;
use orrery_sql::{Error, SqlState};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// Builds the status of an error of this protocol.
pub(crate) fn refusal(code: Code, state: &str, message: impl Into<String>) -> Status {
    let message = format!("{} (SQLSTATE {state})", message.into());
    with_trailers(code, message, state, None)
}

/// Whether a status reports too little memory.
pub(crate) fn is_out_of_memory(status: &Status) -> bool {
    let state = status.metadata().get("sqlstate");
    state.is_some_and(|state| state.as_bytes() == SqlState::OutOfMemory.code().as_bytes())
}

/// Converts an error of the engine.
pub(crate) fn refused(error: &Error) -> Status {
    let state = error.state.code();
    let mut message = format!("{} (SQLSTATE {state})", error.message);
    let more = [
        error.context.as_deref(),
        error.detail.as_deref(),
        error.hint.as_deref(),
    ];
    for more in more.into_iter().flatten() {
        message.push_str("; ");
        message.push_str(more);
    }
    with_trailers(code_of(state), message, state, error.position)
}

fn with_trailers(code: Code, message: String, state: &str, position: Option<usize>) -> Status {
    let mut trailers = MetadataMap::new();
    if let Ok(state) = MetadataValue::try_from(state) {
        trailers.insert("sqlstate", state);
    }
    if let Some(position) = position {
        trailers.insert("position", position.into());
    }
    Status::with_metadata(code, message, trailers)
}

/// The gRPC code for one of PostgreSQL's: it tells programs what to do.
fn code_of(state: &str) -> Code {
    match state {
        "42P01" | "3F000" | "3D000" => Code::NotFound,
        "42P07" | "42P06" | "23505" => Code::AlreadyExists,
        "42501" | "25006" => Code::PermissionDenied,
        "57014" => Code::Cancelled,
        "72000" => Code::OutOfRange,
        "XX001" => Code::DataLoss,
        _ => match &state[..2] {
            "0A" => Code::Unimplemented,
            "21" | "22" | "26" | "42" | "54" => Code::InvalidArgument,
            "23" | "25" | "2B" | "3B" | "55" => Code::FailedPrecondition,
            "40" => Code::Aborted,
            "53" => Code::ResourceExhausted,
            "57" | "HV" | "08" => Code::Unavailable,
            _ => Code::Internal,
        },
    }
}

/// How a statement with this status ended, for its record.
pub(crate) fn ending_of(status: &Status) -> Ending<'_> {
    let state = status.metadata().get("sqlstate");
    match (status.code(), state.and_then(|state| state.to_str().ok())) {
        (Code::DeadlineExceeded, _) => Ending::TimedOut,
        (_, Some(state)) => Ending::Failed(state),
        (_, None) => Ending::Failed("XX000"),
    }
}

/// The error of a statement that an administrator has ended.
pub(crate) fn killed() -> Status {
    refusal(
        Code::Cancelled,
        "57014",
        "canceling statement because an administrator has ended it",
    )
}

/// The error of a malformed message.
pub(crate) fn malformed(what: impl std::fmt::Display) -> Status {
    refusal(Code::InvalidArgument, "08P01", what.to_string())
}

/// The error of a server that is stopping.
pub(crate) fn shutting_down() -> Status {
    refusal(
        Code::Unavailable,
        "57P01",
        "the server stops, and takes no more statements",
    )
}

/// The error of a statement whose time is up.
pub(crate) fn out_of_time() -> Status {
    refusal(
        Code::DeadlineExceeded,
        "57014",
        "canceling statement due to statement timeout",
    )
}

/// The error of a statement whose budget is used up, with the budget's message.
pub(crate) fn used_up(message: String) -> Status {
    refusal(Code::ResourceExhausted, "53400", message)
}

#[cfg(test)]
mod tests {
    use orrery_sql::SqlState;

    use super::*;

    #[test]
    fn a_refusal_has_its_code_for_both_kinds_of_programs() {
        let status = refused(&Error::new(SqlState::UniqueViolation, "twice ä"));
        assert_eq!(status.code(), Code::AlreadyExists);
        assert_eq!(status.message(), "twice ä (SQLSTATE 23505)");
        assert_eq!(status.metadata().get("sqlstate").unwrap(), "23505");
        assert_eq!(code_of("40001"), Code::Aborted);
        assert_eq!(code_of("42601"), Code::InvalidArgument);
    }
}
