//! The place of a database: a local directory, or an address in an object store.
//!
//! ```text
//! --db DIR                              --> LocalFileSystem
//! --db s3://bucket/prefix, file:///dir  --> ObjectFileSystem --> store, by AWS_ variables
//!                                               `--> cache, --cache DIR/prefix-0123456789abcdef/
//! ```
//!
//! This is the only module that makes a file system of the argument. All commands open, create and
//! lock databases through it, so none of them knows which kind it is. Each address has its own
//! directory in the cache, named by the address and the store's endpoint, for two stores may have
//! buckets of one name.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_object_store::{CacheOptions, ObjectFileSystem, ObjectOptions};
use orrery_storage::Database;
use orrery_storage::io::{FileSystem, LocalFileSystem};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::arguments::{CacheArguments, DatabaseArgument};
use crate::cluster_node::ClusterNode;
use crate::failure::Failure;
use crate::units::Bytes;

/// Default size of the cache of an object store.
const CACHE_BYTES_DEFAULT: u64 = 8 << 30;
/// Environment variables for the cache's directory and size.
const CACHE_VARIABLE: &str = "ORRERY_CACHE";
const CACHE_SIZE_VARIABLE: &str = "ORRERY_CACHE_SIZE";
/// Environment variables for the store's endpoint.
const ENDPOINT_VARIABLES: [&str; 3] = ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"];
/// Prefix of the names of caches for one command.
const USED_ONCE: &str = "once-";
/// Length of the readable part of an address in the name of its cache directory.
const READABLE_BYTES_MAX: usize = 80;

/// A database's place, and its file system.
pub(crate) struct DatabasePlace {
    files: Arc<dyn FileSystem>,
    directory: PathBuf,
    objects: Option<InObjectStore>,
}

/// The additional parts of a database in an object store.
struct InObjectStore {
    files: Arc<ObjectFileSystem>,
    cache_bytes: u64,
    /// Removed at the end.
    _own_cache: Option<TempDir>,
}

impl DatabaseArgument {
    /// The place of the database.
    pub(crate) fn place(&self) -> Result<DatabasePlace, Failure> {
        DatabasePlace::of(&self.directory, &self.cache)
    }
}

impl DatabasePlace {
    /// The place of a directory, or of an address.
    pub(crate) fn of(directory: &Path, cache: &CacheArguments) -> Result<Self, Failure> {
        match address(directory) {
            Some(address) => Self::of_address(address, cache, false),
            None if cache.cache.is_some() || cache.cache_size.is_some() => {
                Err(Failure::Other(format!(
                    "{}: a database in a directory has no cache; --cache and --cache-size go with an address such as s3://bucket/prefix",
                    directory.display()
                )))
            }
            None => Ok(Self::of_directory(directory)),
        }
    }

    /// The place of a directory.
    pub(crate) fn of_directory(directory: &Path) -> Self {
        Self {
            files: Arc::new(LocalFileSystem),
            directory: directory.to_path_buf(),
            objects: None,
        }
    }

    /// The place of a database in the store of a cluster's nodes.
    pub(crate) fn in_cluster(node: &ClusterNode) -> Self {
        let (files, directory) = node.place();
        let cache_bytes = files.counts().cache.limit_bytes;
        Self {
            files: Arc::clone(&files) as Arc<dyn FileSystem>,
            directory: directory.to_path_buf(),
            objects: Some(InObjectStore {
                files,
                cache_bytes,
                _own_cache: None,
            }),
        }
    }

    /// The place without its cache: everything is read anew from the store, and cached only for
    /// this command.
    pub(crate) fn past_the_cache(
        directory: &Path,
        cache: &CacheArguments,
    ) -> Result<Self, Failure> {
        match address(directory) {
            Some(address) => Self::of_address(address, cache, true),
            None => Self::of(directory, cache),
        }
    }

    fn of_address(address: &str, cache: &CacheArguments, has_own: bool) -> Result<Self, Failure> {
        let bytes = cache_bytes(cache)?;
        let mut directory = cache_directory(cache)?;
        let own_cache = match has_own {
            true => Some(temporary_below(&directory)?),
            false => None,
        };
        match &own_cache {
            Some(own) => directory = own.path().to_path_buf(),
            None => directory.push(folder_of(address, endpoint().as_deref())),
        }
        let options = ObjectOptions {
            cache: CacheOptions { directory, bytes },
        };
        let (files, directory) = orrery_object_store::open(address, &options)?;
        Ok(Self {
            files: Arc::clone(&files) as Arc<dyn FileSystem>,
            directory,
            objects: Some(InObjectStore {
                files,
                cache_bytes: bytes,
                _own_cache: own_cache,
            }),
        })
    }

    /// Opens the database for reading.
    pub(crate) fn open(&self) -> Result<Database, Failure> {
        Ok(Database::open_with(self.file_system(), &self.directory)?)
    }

    /// Opens the database, or creates an empty one.
    pub(crate) fn create_or_open(&self) -> Result<Database, Failure> {
        Ok(Database::create_or_open_with(
            self.file_system(),
            &self.directory,
        )?)
    }

    /// The file system of the database.
    pub(crate) fn file_system(&self) -> Arc<dyn FileSystem> {
        Arc::clone(&self.files)
    }

    /// The database's directory in its file system.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file system, if it is that of an object store.
    pub(crate) fn objects(&self) -> Option<Arc<ObjectFileSystem>> {
        let objects = self.objects.as_ref()?;
        Some(Arc::clone(&objects.files))
    }

    /// The cache's size, if there is a cache.
    pub(crate) fn cache_bytes(&self) -> Option<u64> {
        self.objects.as_ref().map(|objects| objects.cache_bytes)
    }
}

/// Refuses an address for a command that needs a local directory.
pub(crate) fn only_a_directory(command: &str, directory: &Path) -> Result<(), Failure> {
    match address(directory) {
        None => Ok(()),
        Some(address) => Err(Failure::Other(format!(
            "`orrery {command}` takes a directory of this machine, not {address}"
        ))),
    }
}

/// The argument as an address, also of an unknown scheme, which is reported when it is opened.
fn address(directory: &Path) -> Option<&str> {
    directory
        .to_str()
        .filter(|text| orrery_object_store::is_address(text) || text.contains("://"))
}

/// The cache's directory, from the command line or the environment.
fn cache_directory(arguments: &CacheArguments) -> Result<PathBuf, Failure> {
    let variable = |name: &str| {
        let value: OsString = std::env::var_os(name)?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    };
    let of_user = || {
        let cache = variable("XDG_CACHE_HOME");
        let cache = cache.or_else(|| Some(variable("HOME")?.join(".cache")))?;
        Some(cache.join("orrery/objects"))
    };
    let found = arguments
        .cache
        .clone()
        .or_else(|| variable(CACHE_VARIABLE))
        .or_else(of_user);
    found.ok_or_else(|| {
        Failure::Other(format!(
            "no place for the cache of the object store; give --cache DIR or set {CACHE_VARIABLE}"
        ))
    })
}

/// The cache's size, from the command line or the environment.
pub(crate) fn cache_bytes(arguments: &CacheArguments) -> Result<u64, Failure> {
    if let Some(bytes) = arguments.cache_size {
        return Ok(bytes.0);
    }
    match std::env::var(CACHE_SIZE_VARIABLE) {
        Ok(text) if !text.is_empty() => {
            let bytes = text.parse::<Bytes>();
            let wrong =
                |error| Failure::Other(format!("the environment's {CACHE_SIZE_VARIABLE}: {error}"));
            Ok(bytes.map_err(wrong)?.0)
        }
        _ => Ok(CACHE_BYTES_DEFAULT),
    }
}

fn endpoint() -> Option<String> {
    let set = ENDPOINT_VARIABLES.into_iter();
    set.filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty())
}

/// The name of an address' directory in the cache: the readable characters of its end, and a hash
/// of the whole.
fn folder_of(address: &str, endpoint: Option<&str>) -> String {
    let hashed = Sha256::new()
        .chain_update(address.trim_end_matches('/'))
        .chain_update([0])
        .chain_update(endpoint.unwrap_or_default().trim_end_matches('/'))
        .finalize();
    let hashed: String = hashed[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let readable = address.trim_end_matches('/');
    let readable = &readable[readable.rfind('/').map_or(0, |at| at + 1)..];
    let readable: String = readable
        .bytes()
        .filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        .take(READABLE_BYTES_MAX)
        .map(char::from)
        .collect();
    match readable.is_empty() {
        true => hashed,
        false => format!("{readable}-{hashed}"),
    }
}

/// Creates a directory for a cache that is used once.
fn temporary_below(directory: &Path) -> Result<TempDir, Failure> {
    let failed = |error| Failure::file(directory, error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_left_behind(&path) {
            // If the removal fails, the next command tries again.
            let _ = std::fs::remove_dir_all(path);
        }
    }
    let temporary = tempfile::Builder::new()
        .prefix(USED_ONCE)
        .tempdir_in(directory);
    temporary.map_err(failed)
}

/// Whether a killed process has left the directory: a living one holds the lock of its cache.
fn is_left_behind(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let is_used_once = name.as_encoded_bytes().starts_with(USED_ONCE.as_bytes());
    let lock = is_used_once.then(|| File::open(path.join("LOCK")));
    matches!(lock, Some(Ok(lock)) if lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_folder_in_the_cache_whatever_is_in_it() {
        let here = |address: &str| folder_of(address, None);
        let shop = here("s3://bucket/shop");
        assert!(shop.starts_with("shop-") && shop.len() == "shop-".len() + 16);
        assert_eq!(shop, here("s3://bucket/shop/"));
        assert_ne!(shop, here("s3://other/shop"));
        assert_ne!(
            shop,
            folder_of("s3://bucket/shop", Some("http://127.0.0.1:9000"))
        );
        let long = here(&format!("s3://bucket/{}", "ä/../x".repeat(1000)));
        assert!(long.len() < 100 && !long.contains(['/', '.']), "{long}");
        let longest = here(&format!("s3://bucket/{}", "x".repeat(1000)));
        assert!(longest.len() < 100, "{longest}");
    }

    #[test]
    fn a_directory_needs_no_cache_and_takes_none() {
        let none = CacheArguments::default();
        let place = DatabasePlace::of(Path::new("some/db"), &none).unwrap();
        assert_eq!(place.directory(), Path::new("some/db"));
        assert!(place.objects().is_none() && place.cache_bytes().is_none());
        let cache = CacheArguments {
            cache: Some(PathBuf::from("x")),
            cache_size: None,
        };
        let refused = DatabasePlace::of(Path::new("some/db"), &cache).map(drop);
        assert!(refused.unwrap_err().to_string().contains("--cache"));
    }
}
