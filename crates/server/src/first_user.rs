//! Creation of the first administrator of a database without users (`--auth`).
//!
//! A single server creates one when it starts, or fails. Of the nodes of a new cluster that start
//! together, the leader creates one, and the others wait until they see it: a node that ended
//! instead would take away the majority, which the others need to write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_access::{Name, first_administrator};
use orrery_storage::{Database, Writer};

use crate::options::ServerOptions;

/// How long a node of a cluster waits until there is a user.
const WAIT_MAX: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

/// Creates the first administrator if the options ask for one, there are no users, and this server
/// writes; passes its name and password to the options' function. In a cluster, waits until a node
/// has created one, and takes the writer role by `take` if the role has become free.
pub(crate) async fn make(
    database: &Arc<Database>,
    options: &ServerOptions,
    place: &mut Result<Writer, String>,
    take: impl Fn() -> Result<Writer, String>,
) -> Result<Option<Name>, orrery_access::Error> {
    let Some(tell) = options.auth else {
        return Ok(None);
    };
    let is_alone = options.service.cluster.is_none();
    let begun = Instant::now();
    loop {
        match place.as_ref().map(first_administrator) {
            Ok(Ok(Some((name, password)))) => {
                tell(name.as_str(), &password);
                return Ok(Some(name));
            }
            Ok(Err(error)) if is_alone => return Err(error),
            // Another node leads meanwhile, and creates one.
            Ok(Err(error)) => *place = Err(error.to_string()),
            Ok(Ok(None)) | Err(_) => {}
        }
        if is_alone || has_users(database)? || begun.elapsed() >= WAIT_MAX {
            return Ok(None);
        }
        tokio::time::sleep(PAUSE).await;
        // While the nodes elect another leader, nothing can be read.
        if let Err(error) = database.refresh() {
            tracing::debug!("waiting for the first user: {error}");
        }
        if place.is_err() {
            *place = take();
        }
    }
}

fn has_users(database: &Database) -> Result<bool, orrery_access::Error> {
    let users = orrery_access::read(database.snapshot().tables())?;
    Ok(!users.is_empty())
}
