//! Tests of SQL for askers with rights on some tables only.

mod oracle;
mod statements;

use std::sync::Arc;

use orrery_sql::{Session, SqlScope};
use orrery_storage::table::TableNames;
use orrery_storage::{Asker, GraphNames, ReadScope};

/// Names such as `s.t`; a schema without a name is all of it.
fn names(list: &[&str]) -> TableNames {
    let mut names = TableNames::default();
    for name in list {
        match name.split_once('.') {
            Some((schema, name)) => names.insert(schema.to_owned(), name.to_owned()),
            None => {
                names.schemas.insert((*name).to_owned());
            }
        }
    }
    names
}

/// Who may change something may read it.
pub(crate) fn scope(reads: &[&str], writes: &[&str]) -> Arc<SqlScope> {
    let reads: Vec<&str> = reads.iter().chain(writes).copied().collect();
    Arc::new(SqlScope {
        reads: Some(names(&reads)),
        writes: Some(names(writes)),
        graphs: ReadScope::only(Asker::Anonymous, GraphNames::default()),
        writes_all_graphs: false,
    })
}

fn scoped(mut session: Session, scope: &Arc<SqlScope>) -> Session {
    session.set_scope(Some(Arc::clone(scope)));
    session
}
