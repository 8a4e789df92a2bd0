//! `CREATE EXTERNAL TABLE`.
//!
//! The definition is kept where views are, as the text of the statement: it has nothing of the
//! files but their place, and is read whenever the table is named.

use orrery_storage::table::{DefinitionChange, RelationId, ViewDefinition};

use super::views::VIEWS_MAX;
use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::catalog::lookup::free_relation_name;
use crate::changes::change::Change;
use crate::files::{ExternalTable, is_external};
use crate::{Error, Result, SqlState};

/// Does it.
pub(crate) async fn create(change: &mut Change, mut table: ExternalTable) -> Result<Outcome> {
    let done = Outcome::Done(Tag::Words("CREATE EXTERNAL TABLE"));
    let tables = change.tables()?;
    let old = tables.view_named(&table.schema, &table.name);
    let old = old.filter(|old| table.or_replace && is_external(&old.query));
    if old.is_none()
        && let Err(error) = free_relation_name(&tables, &table.schema, &table.name)
    {
        let is_allowed = table.if_not_exists && error.state == SqlState::DuplicateTable;
        return if is_allowed { Ok(done) } else { Err(error) };
    }
    if tables.views().count() >= VIEWS_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!("a database has at most {VIEWS_MAX} views and external tables"),
        ));
    }
    // There was one of that name when the other server was to be asked, and is none any more.
    table.look(change.state()).await?;
    let provider = table.provider(change.state()).await?;
    table.keep_columns(&*provider);
    let schema = provider.schema();
    let view = ViewDefinition {
        id: old.map_or(RelationId(tables.next_relation()), |old| old.id),
        columns: schema.fields().iter().map(|it| it.name().clone()).collect(),
        query: table.text(),
        schema: table.schema,
        name: table.name,
    };
    let defined = DefinitionChange::DefineView(view);
    change
        .apply(move |transaction| Ok(transaction.define(defined)?))
        .await?;
    Ok(done)
}
