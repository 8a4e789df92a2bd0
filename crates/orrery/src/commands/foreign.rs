//! Access to foreign servers by external tables: the allowed hosts, and the file of passwords.

use std::path::PathBuf;

use orrery_http_client::AllowList;
use orrery_sql::ForeignAccess;

use crate::failure::Failure;

/// Access to any host: the user of a command could connect there anyway.
pub(crate) fn foreign_anywhere() -> ForeignAccess {
    ForeignAccess::anywhere(passwords())
}

/// Access to the hosts of a server's command line.
pub(crate) fn foreign_of(allow: &[String]) -> Result<ForeignAccess, Failure> {
    let allow = AllowList::parse(allow);
    let allow = allow.map_err(|error| Failure::Other(format!("--foreign-allow: {error}")))?;
    Ok(ForeignAccess::to(allow, passwords()))
}

/// The password file, where libpq looks for it.
fn passwords() -> Option<PathBuf> {
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".pgpass"))
    })
}
