//! The catalog: the objects that make up the database, and the holder of the writer role.
//!
//! It is the object `MANIFEST`, JSON with a checksum ([`crate::coordination::checksummed`]): the
//! storage's own manifest as a text, and for each file that it needs the object with its bytes. It
//! is replaced only by a conditional put, so of two writers one finds out that the other was first,
//! and readers see the old one or the new.
//!
//! A put whose answer is lost may have been done, or may be done later. Each catalog has a random
//! `put_id`, by which its writer knows it again:
//!
//! ```text
//! put if the tag is T    done -> published
//!                        refused, or no answer -> read it: ours -> published; still T -> once more; else another writer's -> lost
//!                        no answer after all tries -> unknown: nothing may be removed, nothing committed
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::coordination::checksummed;
use crate::error::{Asked, ObjectError};
use crate::random;
use crate::stores::store::{Change, Condition, Fetched, Put, Store};

/// The object's name.
pub(crate) const CATALOG: &str = "MANIFEST";
/// The version that this program writes and reads.
const FORMAT: u32 = 1;

/// The content of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Catalog {
    pub(crate) format: u32,
    /// Counts the catalogs of this database.
    pub(crate) sequence: u64,
    /// By which its writer knows it again.
    pub(crate) put_id: String,
    /// The turn of the writer that put it; each turn has a greater number.
    pub(crate) epoch: u64,
    /// Who the writer is.
    pub(crate) writer: String,
    /// The storage's manifest; none before the first.
    pub(crate) manifest: Option<String>,
    /// The objects of the files that it needs, by paths below the root.
    pub(crate) files: BTreeMap<String, FileRef>,
    /// The logs that it names: paths, and the names under which their objects are.
    pub(crate) logs: BTreeMap<String, String>,
    /// What no catalog since names any more, and is still there.
    pub(crate) garbage: Vec<Garbage>,
}

/// The object with a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRef {
    pub(crate) key: String,
    pub(crate) bytes: u64,
}

/// An object, or all below a folder, that is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Garbage {
    /// A folder's name ends with a slash.
    pub(crate) name: String,
    /// When it was given up, by the machine's clock, in microseconds since 1970.
    pub(crate) dropped_us: i64,
    /// The first catalog that does not name it.
    pub(crate) sequence: u64,
}

/// A catalog as it stands in the store.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) e_tag: String,
}

/// Why a catalog was not put.
#[derive(Debug)]
pub(crate) enum NotPut {
    /// Another writer has put one.
    Lost,
    /// The one before is still in place.
    Refused(ObjectError),
    /// Nobody knows whether it is in place, or will be.
    Unknown(ObjectError),
}

impl Catalog {
    /// That of the next turn.
    pub(crate) fn of_turn(before: Option<&Self>, writer: &str) -> Self {
        match before {
            Some(before) => Self {
                epoch: before.epoch + 1,
                writer: writer.to_owned(),
                ..before.next()
            },
            None => Self {
                format: FORMAT,
                sequence: 1,
                put_id: random::name(),
                epoch: 1,
                writer: writer.to_owned(),
                manifest: None,
                files: BTreeMap::new(),
                logs: BTreeMap::new(),
                garbage: Vec::new(),
            },
        }
    }

    /// The one after it, which names the same.
    pub(crate) fn next(&self) -> Self {
        Self {
            sequence: self.sequence + 1,
            put_id: random::name(),
            ..self.clone()
        }
    }

    fn parse(store: &Store, fetched: &Fetched) -> Asked<Known> {
        let catalog: Self =
            checksummed::from_bytes(&fetched.bytes).map_err(|what| store.damaged(CATALOG, what))?;
        if catalog.format != FORMAT {
            let found = catalog.format;
            let what = format!("it has format {found}, this program reads {FORMAT}");
            return Err(store.damaged(CATALOG, what));
        }
        Ok(Known {
            catalog: Arc::new(catalog),
            e_tag: fetched.e_tag.clone(),
        })
    }

    /// Reads the catalog; `before` where it is the same, none where there is none.
    pub(crate) async fn read(store: &Store, before: Option<Known>) -> Asked<Option<Known>> {
        let e_tag = before.as_ref().map(|known| known.e_tag.as_str());
        match store.get_changed(CATALOG, e_tag).await? {
            Change::Same => Ok(before),
            Change::Gone => Ok(None),
            Change::New(fetched) => Self::parse(store, &fetched).map(Some),
        }
    }

    /// Puts it in place of the one before, or as the first.
    pub(crate) async fn put(self, store: &Store, before: Option<Known>) -> Result<Known, NotPut> {
        let bytes = checksummed::to_bytes(&self).map_err(|error| {
            NotPut::Refused(ObjectError::Task {
                what: error.to_string(),
            })
        })?;
        let bytes = Bytes::from(bytes);
        let condition = match &before {
            Some(known) => Condition::Tag(known.e_tag.clone()),
            None => Condition::Absent,
        };
        let mut tries = 0;
        loop {
            let answer = store.put_if(CATALOG, bytes.clone(), &condition).await;
            tries += 1;
            let error = match answer {
                Ok(Put::Done(e_tag)) => return Ok(self.known(e_tag)),
                Ok(Put::Refused) => None,
                Err(error) if error.is_refusal() && tries == 1 => {
                    return Err(NotPut::Refused(error));
                }
                Err(error) => Some(error),
            };
            if error.is_some() {
                store.pause(tries - 1).await;
            }
            // Found out rather than asked again at once: the answer tells which of the three it is.
            match (Self::read(store, before.clone()).await, error) {
                (Ok(Some(found)), _) if found.catalog.put_id == self.put_id => return Ok(found),
                (Ok(found), error) => {
                    let e_tag =
                        |known: &Option<Known>| known.as_ref().map(|known| known.e_tag.clone());
                    if e_tag(&found) != e_tag(&before) {
                        return Err(NotPut::Lost);
                    }
                    if tries >= store.timing.attempts_max {
                        let error = error.unwrap_or_else(|| {
                            store.damaged(CATALOG, "a put is refused though nothing has changed")
                        });
                        return Err(NotPut::Unknown(error));
                    }
                }
                (Err(second), error) if tries >= store.timing.attempts_max => {
                    return Err(NotPut::Unknown(error.unwrap_or(second).after(tries)));
                }
                (Err(_), _) => {}
            }
        }
    }

    fn known(self, e_tag: String) -> Known {
        Known {
            catalog: Arc::new(self),
            e_tag,
        }
    }
}
