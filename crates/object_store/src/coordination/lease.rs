//! The writer's lease: the object `LOCK`, JSON with a checksum
//! ([`crate::coordination::checksummed`]).
//!
//! It keeps writers from waiting for each other's failures: who finds a living lease is refused at
//! once. It decides nothing: a writer that was taken for dead and is not is kept out by the catalog
//! and the fences in the logs, whatever `LOCK` says.
//!
//! A lease is alive while it is not released, was put less than [`Timing::lease`](crate::Timing)
//! ago by the store's own clock, and its process is not known to have gone. It also carries the
//! text of the storage's lock file, which says where a log was closed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use orrery_storage::{Error, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::coordination::machine::{self, ProcessId};
use crate::error::{Asked, ObjectError};
use crate::stores::store::{Condition, Fetched, Put, Store};
use crate::{coordination::checksummed, random};

/// The object's name.
pub(crate) const LOCK: &str = "LOCK";
const FORMAT: u32 = 1;
/// Giving a lease back is only a courtesy to the next writer.
const RELEASE_WAIT: Duration = Duration::from_secs(5);

/// The content of the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LockObject {
    format: u32,
    /// A random name for each time that the lock is taken.
    holder: String,
    process: Option<ProcessId>,
    /// Where it takes changes of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// Counts the puts of this holder.
    renewals: u64,
    is_released: bool,
    /// The storage's lock file.
    text: String,
}

/// The lease of a writer.
#[derive(Debug)]
pub(crate) struct Lease {
    store: Arc<Store>,
    pub(crate) holder: String,
    held: Arc<Mutex<Held>>,
    renewing: JoinHandle<()>,
}

#[derive(Debug)]
struct Held {
    object: LockObject,
    e_tag: String,
    /// Whether somebody else has taken it.
    is_lost: bool,
}

/// Why a lease was not taken.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// Somebody has it.
    Held {
        /// The number of the process, where that means something here.
        process: Option<u32>,
        /// Where it takes changes of others, if it does.
        address: Option<String>,
    },
    Failed(ObjectError),
}

impl From<ObjectError> for NotTaken {
    fn from(error: ObjectError) -> Self {
        Self::Failed(error)
    }
}

/// The text of the storage's lock file, if there is one.
pub(crate) async fn read_text(store: &Store) -> Asked<Option<Vec<u8>>> {
    let found = store.get(LOCK).await?;
    let text = |fetched: Fetched| Ok(parse(store, &fetched)?.text.into_bytes());
    found.map(text).transpose()
}

/// Where the process takes changes of others that has the lease, if it says so.
pub(crate) async fn address_of_holder(store: &Store) -> Asked<Option<String>> {
    let Some(found) = store.get(LOCK).await? else {
        return Ok(None);
    };
    let object = parse(store, &found)?;
    Ok(object.address.filter(|_| !object.is_released))
}

fn parse(store: &Store, fetched: &Fetched) -> Asked<LockObject> {
    let object: LockObject =
        checksummed::from_bytes(&fetched.bytes).map_err(|what| store.damaged(LOCK, what))?;
    match object.format {
        FORMAT => Ok(object),
        found => {
            let what = format!("it has format {found}, this program reads {FORMAT}");
            Err(store.damaged(LOCK, what))
        }
    }
}

fn to_bytes(object: &LockObject) -> Asked<Bytes> {
    let bytes = checksummed::to_bytes(object).map_err(|error| ObjectError::Task {
        what: error.to_string(),
    })?;
    Ok(Bytes::from(bytes))
}

impl Lease {
    /// Takes the lease, without waiting for who has it. Who finds it held reads the address in it.
    ///
    /// With `takes_over` it is taken from who has it.
    pub(crate) fn take(
        store: &Arc<Store>,
        address: Option<String>,
        takes_over: bool,
    ) -> Result<Self, NotTaken> {
        let holder = random::name();
        let own = holder.clone();
        machine::note(&holder);
        let taken =
            store.wait(|store| async move { Ok(take(&store, own, address, takes_over).await) });
        match taken.unwrap_or_else(|error| Err(error.into())) {
            Ok(held) => {
                let held = Arc::new(Mutex::new(held));
                let renewal = renew(Arc::clone(store), Arc::clone(&held));
                Ok(Self {
                    renewing: store.runtime.spawn(renewal),
                    store: Arc::clone(store),
                    holder,
                    held,
                })
            }
            Err(error) => {
                machine::forget(&holder);
                Err(error)
            }
        }
    }

    /// Changes the storage's text; put with the next renewal, or by [`Self::put`].
    pub(crate) fn set_text(&self, text: &[u8], path: &Path) -> Result<()> {
        let Ok(text) = String::from_utf8(text.to_vec()) else {
            return Err(Error::invalid_input(path, "it is no text"));
        };
        let held = Arc::clone(&self.held);
        let changed = self.store.wait(|_| async move {
            held.lock().await.object.text = text;
            Ok(())
        });
        changed.map_err(|error| error.at(path, "write"))
    }

    /// Puts the lease with what was changed.
    pub(crate) fn put(&self) -> Asked<()> {
        let held = Arc::clone(&self.held);
        self.store
            .wait(|store| async move { held.lock().await.put(&store).await })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
        let held = Arc::clone(&self.held);
        let released = self.store.wait(|store| async move {
            let release = async {
                let mut held = held.lock().await;
                held.object.is_released = true;
                held.put(&store).await
            };
            let limit = RELEASE_WAIT.min(store.timing.request);
            match tokio::time::timeout(limit, release).await {
                Ok(released) => released,
                Err(_) => Err(ObjectError::TimedOut {
                    operation: "release",
                    object: LOCK.to_owned(),
                    store: store.address.clone(),
                    seconds: limit.as_secs(),
                }),
            }
        });
        if let Err(error) = released {
            tracing::warn!("the writer's lease was not given back, it ends by itself: {error}");
        }
        machine::forget(&self.holder);
    }
}

impl Held {
    /// Puts it once more, as long as it is ours.
    async fn put(&mut self, store: &Store) -> Asked<()> {
        if self.is_lost {
            return Ok(());
        }
        self.object.renewals += 1;
        let bytes = to_bytes(&self.object)?;
        let mut tries = 0;
        loop {
            let condition = Condition::Tag(self.e_tag.clone());
            let answer = store.put_if(LOCK, bytes.clone(), &condition).await;
            tries += 1;
            match answer {
                Ok(Put::Done(e_tag)) => {
                    self.e_tag = e_tag;
                    return Ok(());
                }
                Ok(Put::Refused) => match store.get(LOCK).await? {
                    // The answer to a put of ours was lost.
                    Some(found) if parse(store, &found)?.holder == self.object.holder => {
                        self.e_tag = found.e_tag;
                        if found.bytes == bytes {
                            return Ok(());
                        }
                    }
                    _ => {
                        self.is_lost = true;
                        tracing::warn!(
                            "{}: another process has taken the writer's lease; commits from here fail from now on",
                            store.address
                        );
                        return Ok(());
                    }
                },
                Err(error) if error.is_refusal() => return Err(error),
                Err(error) if tries >= store.timing.attempts_max => return Err(error.after(tries)),
                Err(_) => {}
            }
            if tries >= 2 * store.timing.attempts_max {
                return Err(store.damaged(LOCK, "its puts are refused though nothing has changed"));
            }
            store.pause(tries - 1).await;
        }
    }
}

/// Puts the lease again and again, until it is lost or given back.
async fn renew(store: Arc<Store>, held: Arc<Mutex<Held>>) {
    loop {
        tokio::time::sleep(store.timing.lease_renewal).await;
        let mut held = held.lock().await;
        if let Err(error) = held.put(&store).await {
            tracing::warn!("the writer's lease could not be renewed: {error}");
        }
        if held.is_lost || held.object.is_released {
            return;
        }
    }
}

async fn take(
    store: &Arc<Store>,
    holder: String,
    address: Option<String>,
    takes_over: bool,
) -> Result<Held, NotTaken> {
    let own = ProcessId::own();
    let mut tries = 0;
    loop {
        let (condition, text) = match store.get(LOCK).await? {
            None => (Condition::Absent, String::new()),
            Some(found) => {
                let object = parse(store, &found)?;
                if object.holder == holder {
                    return Ok(Held {
                        object,
                        e_tag: found.e_tag,
                        is_lost: false,
                    });
                }
                if !takes_over && is_alive(store, &object, &found, own.as_ref(), &holder).await? {
                    let process = object.process;
                    let near = process.filter(|process| process.is_near(own.as_ref()));
                    return Err(NotTaken::Held {
                        process: near.map(|process| process.process),
                        address: object.address,
                    });
                }
                (Condition::Tag(found.e_tag), object.text)
            }
        };
        let object = LockObject {
            format: FORMAT,
            holder: holder.clone(),
            process: own.clone(),
            address: address.clone(),
            renewals: 0,
            is_released: false,
            text,
        };
        let answer = store.put_if(LOCK, to_bytes(&object)?, &condition).await;
        tries += 1;
        match answer {
            Ok(Put::Done(e_tag)) => {
                return Ok(Held {
                    object,
                    e_tag,
                    is_lost: false,
                });
            }
            Err(error) if error.is_refusal() || tries >= store.timing.attempts_max => {
                return Err(error.after(tries).into());
            }
            Ok(Put::Refused) if tries >= store.timing.attempts_max => {
                return Err(NotTaken::Held {
                    process: None,
                    address: None,
                });
            }
            // Looked at anew: it may be ours by now.
            Ok(Put::Refused) | Err(_) => store.pause(tries - 1).await,
        }
    }
}

async fn is_alive(
    store: &Store,
    object: &LockObject,
    found: &Fetched,
    own: Option<&ProcessId>,
    asker: &str,
) -> Asked<bool> {
    let process = object.process.as_ref();
    if object.is_released || process.is_some_and(|one| one.has_gone(own, &object.holder)) {
        return Ok(false);
    }
    let now = store.now(asker).await?;
    let age = now.duration_since(found.modified).unwrap_or_default();
    Ok(age <= store.timing.lease)
}
