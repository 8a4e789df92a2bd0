//! Converts a user's rights into the scope of a SQL session.
//!
//! HTTP, PostgreSQL's protocol and Flight all do it here, for each request, so that a revoked right
//! is gone with the next.

use crate::request::conditions::tag_of_tables;
use orrery_service::errors::ServiceError;
use orrery_service::users::authentication::Rights;
use orrery_sql::SqlScope;
use orrery_storage::ReadScope;
use std::sync::Arc;

/// The scope of a session for an asker of these graphs and rights; `None` where that is everything.
///
/// # Errors
/// Where there are no users, and so no rights to tables, but some graphs are hidden.
pub(crate) fn scope_of(
    graphs: &ReadScope,
    rights: Option<&Rights>,
) -> Result<Option<Arc<SqlScope>>, ServiceError> {
    match rights {
        Some(rights) => Ok(rights.sql.clone()),
        None if graphs.graphs().is_none() => Ok(None),
        None => Err(ServiceError::forbidden(
            "SQL sees all tables, and all graphs; only who may see all graphs may ask in it",
        )),
    }
}

/// The part of an answer's tag for a scope: askers who see the same have the same.
pub(super) fn tag_of(scope: Option<&SqlScope>) -> String {
    scope.map(tag_of_tables).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_storage::table::TableNames;
    use orrery_storage::{Asker, GraphNames};

    fn scope(tables: Option<&[(&str, &str)]>, graphs: ReadScope) -> SqlScope {
        let names = tables.map(|tables| {
            let mut names = TableNames::default();
            for (schema, name) in tables {
                names.insert((*schema).to_owned(), (*name).to_owned());
            }
            names
        });
        SqlScope {
            reads: names,
            writes: None,
            graphs,
            writes_all_graphs: true,
        }
    }

    #[test]
    fn tags_are_those_of_what_is_seen() {
        let all = || ReadScope::all_graphs(Asker::User(1));
        let none = || ReadScope::only(Asker::User(2), GraphNames::default());
        let tag = |scope: &SqlScope| tag_of(Some(scope));
        assert_eq!(tag_of(None), "");
        assert_eq!(tag(&scope(None, all())), "");
        let mut tags = vec![
            tag(&scope(None, none())),
            tag(&scope(Some(&[]), all())),
            tag(&scope(Some(&[]), none())),
            tag(&scope(Some(&[("a", "b")]), all())),
            tag(&scope(Some(&[("a", "b")]), none())),
            tag(&scope(Some(&[("a", "bc")]), all())),
            tag(&scope(Some(&[("a", "b"), ("a", "c")]), all())),
            tag(&scope(Some(&[("a", "b"), ("b", "c")]), all())),
        ];
        let count = tags.len();
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), count, "{tags:?}");
        let again = scope(Some(&[("a", "b")]), ReadScope::all_graphs(Asker::User(9)));
        assert_eq!(tag(&again), tag(&scope(Some(&[("a", "b")]), all())));
    }

    #[test]
    fn without_users_everything_is_read_where_no_graph_is_hidden() {
        let all = ReadScope::all_graphs(Asker::Anonymous);
        assert!(scope_of(&all, None).is_ok_and(|scope| scope.is_none()));
        let some = ReadScope::only(Asker::Anonymous, GraphNames::default());
        assert!(scope_of(&some, None).is_err());
    }
}
