//! Databases in object stores: the storage's file system over S3, with a local disk cache.
//!
//! ```text
//! storage ── FileSystem ──> file_system ── view ──> catalog        which object is which file; one at a time is in place
//!                             │   │   │              lease, turn    who writes, and that nobody else does
//!                             │   │   └─ log         a sync is an object
//!                             │   └───── streams ─ staging ─ upload files are written here, then sent
//!                             └───────── cache <── store            pieces of files that are read
//! ```
//!
//! Rooms: `files` is the file system that the storage sees. `coordination` holds the catalog, the
//! writer's lease and the readers'. `stores` sends requests to a store; `cache` keeps pieces of
//! files on the local disk.
//!
//! Below the prefix of a database lie
//!
//! ```text
//! MANIFEST                 the catalog
//! files/<epoch>-<number>   the bytes of a file; never changed, no name is given twice (with a random part between)
//! log/<id>/<10 digits>     the syncs of a log file
//! LOCK                     the writer's lease
//! readers/<id>             what others read
//! clock/<id>               for a moment: what time it is
//! ```
//!
//! One process writes at a time, any number read. A writer that was wrongly taken for
//! dead has all its visible puts refused (see `turn`); its successor reads everything that it
//! acknowledged. The store must support conditional puts: `If-None-Match: *` and `If-Match`.

use std::path::PathBuf;
use std::sync::Arc;

mod cache;
mod coordination;
mod error;
mod files;
mod options;
mod random;
mod stores;
mod timing;

pub use cache::{CacheCounts, CacheOptions};
pub use error::ObjectError;
pub use files::file_system::ObjectFileSystem;
pub use options::ObjectOptions;
pub use stores::counts::{ObjectCounts, RequestKind};
pub use stores::location::is_address;
pub use timing::Timing;

/// Opens the file system of a database at an address; returns it and the directory to hand to the
/// storage. Settings of the store are the environment's variables, such as `AWS_ACCESS_KEY_ID`,
/// `AWS_REGION`, `AWS_ENDPOINT`.
pub fn open(
    address: &str,
    options: &ObjectOptions,
) -> Result<(Arc<ObjectFileSystem>, PathBuf), ObjectError> {
    open_with(address, std::env::vars(), options)
}

/// Opens a database in an object store, with given settings instead of the environment's.
pub fn open_with(
    address: &str,
    settings: impl IntoIterator<Item = (String, String)>,
    options: &ObjectOptions,
) -> Result<(Arc<ObjectFileSystem>, PathBuf), ObjectError> {
    let timing = Timing::default();
    let location = stores::location::Location::parse(address, settings, &timing)?;
    let file_system = ObjectFileSystem::over_with(
        location.store,
        location.prefix,
        &location.root,
        options,
        timing,
    )?;
    Ok((Arc::new(file_system), PathBuf::from(location.root)))
}
