//! The first administrator of a database without users (`--auth`).
//!
//! Alone, the server makes one when it starts, or cannot. Of the nodes of a new cluster that start together the one that leads makes one, and the others wait until they
//! see that: a node that ended instead would take the majority from the others, which need it to write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_access::{Name, first_administrator};
use orrery_storage::{Database, Writer};

use crate::options::ServerOptions;

/// How long a node of a cluster waits until there is a user.
const WAIT_MAX: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

/// Makes the first administrator if the options ask for one, there is nobody, and this server writes; tells who it is. In a cluster waits until somebody has made one, and
/// takes the writer's place by `take` if that has become free.
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
            // Another leads meanwhile, and makes one.
            Ok(Err(error)) => *place = Err(error.to_string()),
            Ok(Ok(None)) | Err(_) => {}
        }
        if is_alone || has_users(database)? || begun.elapsed() >= WAIT_MAX {
            return Ok(None);
        }
        tokio::time::sleep(PAUSE).await;
        // While the nodes elect another one nothing can be read.
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
