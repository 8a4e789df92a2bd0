//! To which other servers external tables may lead, and where the passwords for these are.

use std::path::PathBuf;

use orrery_http_client::AllowList;
use orrery_sql::ForeignAccess;

use crate::failure::Failure;

/// To any: whoever runs a command on a database could connect there anyway.
pub(crate) fn foreign_anywhere() -> ForeignAccess {
    ForeignAccess::anywhere(passwords())
}

/// To the hosts of a server's command line.
pub(crate) fn foreign_of(allow: &[String]) -> Result<ForeignAccess, Failure> {
    let allow = AllowList::parse(allow);
    let allow = allow.map_err(|error| Failure::Other(format!("--foreign-allow: {error}")))?;
    Ok(ForeignAccess::to(allow, passwords()))
}

/// The file of passwords, where libpq looks for it.
fn passwords() -> Option<PathBuf> {
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".pgpass"))
    })
}
