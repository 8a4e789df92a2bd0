//! What SQL reads and changes for whoever asks: the one place where rights of users become a session's scope. HTTP, PostgreSQL's protocol and Flight ask it
//! for each request, so that a right that is taken is gone with the next.

use crate::authentication::Rights;
use crate::conditions::tag_of_tables;
use crate::errors::ServerError;
use orrery_sql::SqlScope;
use orrery_storage::ReadScope;
use std::sync::Arc;

/// The scope of a session for who sees these graphs and has these rights; `None` where that is everything.
///
/// # Errors
/// Where there are no users, and so no rights to tables, but some graphs are hidden.
pub(crate) fn scope_of(
    graphs: &ReadScope,
    rights: Option<&Rights>,
) -> Result<Option<Arc<SqlScope>>, ServerError> {
    match rights {
        Some(rights) => Ok(rights.sql.clone()),
        None if graphs.graphs().is_none() => Ok(None),
        None => Err(ServerError::forbidden(
            "SQL sees all tables, and all graphs; only who may see all graphs may ask in it",
        )),
    }
}

/// What a scope adds to the tag of an answer: who sees the same has the same.
pub(super) fn tag_of(scope: Option<&SqlScope>) -> String {
    scope.map(tag_of_tables).unwrap_or_default()
}
