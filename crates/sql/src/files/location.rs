//! The resolution of file names in statements to files.
//!
//! A location is a path on this machine or an address `s3://bucket/key`: of one file, of a
//! directory (all files of one kind in it), or with `*`, `?` and `[...]` of many. Whoever may write
//! statements chooses what is read, with the rights of our process; hence nothing is opened unless
//! the session was allowed to at its start.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use url::Url;

use crate::{Error, Result, SqlState};

/// A location may have so many files.
const FILES_MAX: usize = 10_000;

/// Whether a session's statements may use files of this machine and of object stores.
#[derive(Clone, Default)]
pub struct FileAccess {
    settings: Option<Arc<[(String, String)]>>,
}

impl fmt::Debug for FileAccess {
    /// Without the settings, among which are keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = if self.is_allowed() {
            "allowed"
        } else {
            "refused"
        };
        f.write_str(words)
    }
}

impl FileAccess {
    /// They may not (42501).
    pub fn refused() -> Self {
        Self::default()
    }

    /// They may read and write whatever our process may. Settings are pairs such as `AWS_REGION`,
    /// `AWS_ENDPOINT`: the environment's variables.
    pub fn allowed(settings: impl IntoIterator<Item = (String, String)>) -> Self {
        let settings = settings.into_iter();
        let settings = settings.filter(|(name, _)| name.starts_with("AWS_"));
        let settings = settings.map(|(name, value)| (name.to_ascii_lowercase(), value));
        Self {
            settings: Some(settings.collect()),
        }
    }

    /// Whether they may.
    pub fn is_allowed(&self) -> bool {
        self.settings.is_some()
    }

    /// Opens the store of a location, which is not looked at yet.
    pub(crate) fn open(&self, location: &str, environment: &RuntimeEnv) -> Result<Location> {
        let settings = self.settings.as_ref().ok_or_else(|| {
            Error::new(
                SqlState::InsufficientPrivilege,
                "permission denied to read or write files",
            )
            .with_hint("The session was not allowed to at its start. COPY FROM STDIN and TO STDOUT are open to all.")
        })?;
        if location.trim().is_empty() || location.contains('\0') {
            return Err(Error::new(
                SqlState::InvalidParameterValue,
                format!("{location:?} is no name of a file"),
            ));
        }
        let unusable = |error: &dyn fmt::Display| {
            let words = format!("{location}: {error}");
            Error::new(SqlState::InvalidParameterValue, words)
        };
        let (url, pattern) = match location.split_once("://") {
            None => {
                let url = ListingTableUrl::parse(location).map_err(|error| unusable(&error))?;
                let pattern = url.get_glob().as_ref().map(ToString::to_string);
                (url, pattern)
            }
            Some(("file", path)) if path.starts_with('/') => {
                return self.open(path, environment);
            }
            Some(("s3" | "s3a", path)) => {
                let (before, pattern) = without_pattern(path);
                let parsed = Url::parse(&format!("s3://{before}"));
                let parsed = parsed.map_err(|error| unusable(&error))?;
                let (store, _) = object_store::parse_url_opts(&parsed, settings.iter().cloned())
                    .map_err(|error| unusable(&error))?;
                let url = ListingTableUrl::try_new(parsed, None);
                let url = url.map_err(|error| unusable(&error))?;
                environment.register_object_store(url.object_store().as_ref(), store.into());
                match pattern {
                    Some(pattern) => {
                        let with = url.with_glob(&pattern).map_err(|error| unusable(&error))?;
                        (with, Some(pattern))
                    }
                    None => (url, None),
                }
            }
            Some((scheme, _)) => {
                return Err(Error::unsupported(format!("the scheme {scheme}: of files")));
            }
        };
        let store = environment.object_store(url.object_store());
        Ok(Location {
            name: location.to_owned(),
            store: store.map_err(|error| unusable(&error))?,
            crosses_directories: pattern.is_some_and(|pattern| pattern.contains('/')),
            url,
        })
    }
}

/// The path as far as it has no pattern, and the pattern.
fn without_pattern(path: &str) -> (&str, Option<String>) {
    let Some(first) = path.find(['*', '?', '[']) else {
        return (path, None);
    };
    let directory = path[..first].rfind('/').map_or(0, |at| at + 1);
    let (before, pattern) = path.split_at(directory);
    (before, Some(pattern.to_owned()))
}

/// What a statement names.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// As it was given.
    pub(crate) name: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) url: ListingTableUrl,
    crosses_directories: bool,
}

/// A file that is there.
#[derive(Debug, Clone)]
pub(crate) struct FoundFile {
    /// As messages have it.
    pub(crate) name: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    /// None of one that a scan has found.
    store_url: Option<ObjectStoreUrl>,
    pub(crate) meta: ObjectMeta,
}

impl FoundFile {
    /// As a scan has it.
    pub(crate) fn of_store(store: &Arc<dyn ObjectStore>, meta: ObjectMeta) -> Self {
        Self {
            name: format!("/{}", meta.location),
            store: Arc::clone(store),
            store_url: None,
            meta,
        }
    }

    /// As DataFusion's readers have it.
    pub(crate) fn url(&self) -> Result<ListingTableUrl> {
        let broken = || {
            let words = format!("{} has no address", self.name);
            Error::new(SqlState::InvalidParameterValue, words)
        };
        let store_url = self.store_url.as_ref().ok_or_else(broken)?;
        let mut url = Url::parse(store_url.as_str()).map_err(|_| broken())?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear();
            segments.extend(self.meta.location.as_ref().split('/'));
        }
        ListingTableUrl::try_new(url, None).map_err(|_| broken())
    }
}

impl Location {
    /// The store's own address.
    pub(crate) fn store_url(&self) -> ObjectStoreUrl {
        self.url.object_store()
    }

    /// The files, by their names; those of a directory that `is_wanted` takes by its name.
    pub(crate) async fn files(
        &self,
        is_wanted: impl Fn(&str) -> bool + Send + Sync,
    ) -> Result<Vec<FoundFile>> {
        let failed = |error: object_store::Error| self.failed(&error);
        if self.url.get_glob().is_none() && !self.url.is_collection() {
            let path = PathBuf::from(format!("/{}", self.url.prefix()));
            if self.url.scheme() == "file" && path.exists() && !path.is_file() && !path.is_dir() {
                return Err(no_regular_file(&self.name));
            }
            match self.store.head(self.url.prefix()).await {
                Ok(meta) => return Ok(vec![self.found(meta)]),
                Err(object_store::Error::NotFound { .. }) if self.url.scheme() != "file" => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let is_there = |meta: &ObjectMeta| {
            let name = meta.location.filename().unwrap_or_default();
            let is_hidden = name.starts_with(['.', '_']);
            !is_hidden
                && match self.url.get_glob() {
                    None => is_wanted(name),
                    Some(pattern) if !self.crosses_directories => pattern.matches(name),
                    Some(_) => self.url.contains(&meta.location, false),
                }
        };
        let mut listed = match self.crosses_directories {
            true => self.store.list(Some(self.url.prefix())),
            // What is below is not looked at: it may be much, and not for everybody.
            false => {
                let listed = self.store.list_with_delimiter(Some(self.url.prefix()));
                let listed = listed.await.map_err(failed)?.objects;
                futures::stream::iter(listed.into_iter().map(Ok)).boxed()
            }
        };
        let mut found = Vec::new();
        while let Some(meta) = listed.try_next().await.map_err(failed)? {
            if !is_there(&meta) {
                continue;
            }
            if found.len() >= FILES_MAX {
                return Err(Error::new(
                    SqlState::ProgramLimitExceeded,
                    format!("{} has more than {FILES_MAX} files", self.name),
                ));
            }
            found.push(self.found(meta));
        }
        if found.is_empty() {
            return Err(Error::new(
                SqlState::UndefinedFile,
                format!("could not open file \"{}\": there is none", self.name),
            ));
        }
        found.sort_by(|one, other| one.meta.location.cmp(&other.meta.location));
        Ok(found)
    }

    /// Fails where a file here would take the place of something else, or make directories.
    pub(crate) fn refuse_what_is_no_file(&self) -> Result<()> {
        if self.url.scheme() != "file" {
            return Ok(());
        }
        let path = PathBuf::from(format!("/{}", self.url.prefix()));
        if let Ok(there) = path.symlink_metadata()
            && !there.is_file()
        {
            return Err(no_regular_file(&self.name));
        }
        match path.parent().is_some_and(std::path::Path::is_dir) {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::UndefinedFile,
                format!(
                    "could not open file \"{}\": there is no such directory",
                    self.name
                ),
            )),
        }
    }

    fn found(&self, meta: ObjectMeta) -> FoundFile {
        let is_whole = self.url.get_glob().is_none() && meta.location == *self.url.prefix();
        let name = match is_whole {
            true => self.name.clone(),
            false if self.url.scheme() == "file" => format!("/{}", meta.location),
            false => format!("{}{}", self.store_url().as_str(), meta.location),
        };
        FoundFile {
            name,
            store: Arc::clone(&self.store),
            store_url: Some(self.store_url()),
            meta,
        }
    }

    /// What is said where the store fails.
    pub(crate) fn failed(&self, error: &object_store::Error) -> Error {
        of_store(&self.name, error)
    }
}

fn no_regular_file(name: &str) -> Error {
    Error::new(
        SqlState::WrongObjectType,
        format!("\"{name}\" is no regular file"),
    )
    .with_hint("COPY FROM STDIN and TO STDOUT take and give data of any kind.")
}

/// What is said of a file where its store fails.
pub(crate) fn of_store(name: &str, error: &object_store::Error) -> Error {
    let (state, words) = match error {
        object_store::Error::NotFound { .. } => (
            SqlState::UndefinedFile,
            "No such file or directory".to_owned(),
        ),
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => {
            (SqlState::InsufficientPrivilege, error.to_string())
        }
        other => (SqlState::IoError, other.to_string()),
    };
    Error::new(state, format!("could not open file \"{name}\": {words}"))
}
