//! The errors of object stores, and their translation to the storage's.
//!
//! The storage knows files: an error here becomes one of its errors with the path that it asked for
//! ([`ObjectError::at`]), so that an object that is missing is a file that is missing.

use std::io;
use std::path::{Path, PathBuf};

use object_store::client::{HttpError, HttpErrorKind};
use orrery_storage::{Error, without_numbers};
use url::Url;

/// An error of an object store, or of what was found there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// An address names no place for a database.
    #[error(
        "{address} is no place for a database: {what}; write s3://BUCKET/PREFIX or file:///DIRECTORY"
    )]
    Address {
        /// The address as it was given.
        address: String,
        /// What is wrong with it.
        what: String,
    },
    /// The store answered with an error, or not at all; with the last try where more could help.
    #[error(
        "cannot {operation} {object} in {store}: {}{}",
        answer(source),
        tries_text(*tries)
    )]
    Store {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The object's name below the database's address.
        object: String,
        /// The database's address.
        store: String,
        /// What the store said.
        source: Box<object_store::Error>,
        /// How often it was tried.
        tries: u32,
    },
    /// The store did not answer.
    #[error(
        "cannot {operation} {object} in {store}: no answer within {seconds} seconds; look at the network and the store"
    )]
    TimedOut {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The object's name below the database's address.
        object: String,
        /// The database's address.
        store: String,
        /// How long the last try waited.
        seconds: u64,
    },
    /// An object does not hold what was put there.
    #[error("{object} in {store} is damaged: {what}; restore the database from a backup")]
    Damaged {
        /// The object's name below the database's address.
        object: String,
        /// The database's address.
        store: String,
        /// What was found.
        what: String,
    },
    /// A failure of the local disk, where files are written before they are sent.
    #[error("cannot {operation} {}: {source}", path.display())]
    Local {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The local path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The tasks that speak with stores could not be started, or one ended without an answer.
    #[error("a request to the object store ended without an answer: {what}; restart the program")]
    Task {
        /// What is known of it.
        what: String,
    },
    /// A failure of the storage's own files, or of the cache.
    #[error(transparent)]
    Storage(#[from] Error),
}

/// What came of asking a store.
pub(crate) type Asked<T> = std::result::Result<T, ObjectError>;

impl ObjectError {
    /// Whether the object is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Store { source, .. } if matches!(**source, object_store::Error::NotFound { .. }))
    }

    /// Whether the store has understood and refused, so that nothing was changed and another try
    /// would bring the same.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Store { source, .. } if is_permanent(source))
    }

    /// The same, where it was tried so often.
    pub(crate) fn after(mut self, count: u32) -> Self {
        if let Self::Store { tries, .. } = &mut self {
            *tries = count;
        }
        self
    }

    /// The same as an error of the storage about a path.
    pub(crate) fn at(self, path: &Path, operation: &'static str) -> Error {
        let path = path.to_path_buf();
        match self {
            Self::Storage(error) => error,
            Self::Local {
                operation,
                path,
                source,
            } => Error::from_io(&path, operation, source),
            Self::Damaged { .. } => Error::Corrupt {
                path,
                offset: 0,
                what: self.to_string(),
            },
            other if other.is_not_found() => Error::NotFound { path, operation },
            other => Error::Io {
                path,
                operation,
                source: io::Error::other(other),
            },
        }
    }
}

/// Whether asking once more would bring the same answer.
pub(crate) fn is_permanent(error: &object_store::Error) -> bool {
    use object_store::Error as Answer;
    matches!(
        error,
        Answer::NotFound { .. }
            | Answer::InvalidPath { .. }
            | Answer::NotSupported { .. }
            | Answer::AlreadyExists { .. }
            | Answer::Precondition { .. }
            | Answer::NotModified { .. }
            | Answer::NotImplemented { .. }
            | Answer::PermissionDenied { .. }
            | Answer::Unauthenticated { .. }
            | Answer::UnknownConfigurationKey { .. }
    )
}

fn tries_text(tries: u32) -> String {
    match tries {
        0 | 1 => String::new(),
        tries => format!("; {tries} tries"),
    }
}

/// What a store answered, in one line for people: `object_store` nests up to five errors, each of
/// which quotes the next.
fn answer(error: &object_store::Error) -> String {
    let whole = error.to_string();
    let mut cause: &dyn std::error::Error = error;
    let mut http = None;
    while let Some(source) = cause.source() {
        http = source.downcast_ref::<HttpError>().or(http);
        cause = source;
    }
    let last = without_numbers(&cause.to_string());
    let words = match http {
        Some(error) => {
            let origin = origin(&whole).unwrap_or_else(|| "the store".to_owned());
            match error.kind() {
                HttpErrorKind::Connect => format!("no answer from {origin}: {last}"),
                HttpErrorKind::Timeout => format!("no answer in time from {origin}"),
                _ => format!("the connection to {origin} failed: {last}"),
            }
        }
        None => match (element(&last, "Code"), element(&last, "Message")) {
            (Some(code), Some(message)) => format!("the store answers {code}: {message}"),
            (Some(code), None) => format!("the store answers {code}"),
            (None, _) => last,
        },
    };
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The server that a message is about, with the setting that names it where it is not Amazon's.
fn origin(message: &str) -> Option<String> {
    let start = message
        .find("http://")
        .or_else(|| message.find("https://"))?;
    let url = Url::parse(message[start..].split_whitespace().next()?).ok()?;
    let origin = url.origin().ascii_serialization();
    Some(match url.host_str()?.ends_with(".amazonaws.com") {
        true => origin,
        false => format!("{origin} (AWS_ENDPOINT)"),
    })
}

/// What stands in an element of an answer in XML.
fn element<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = answer.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use object_store::ObjectStoreExt as _;
    use object_store::aws::AmazonS3Builder;
    use object_store::path::Path as ObjectPath;
    use object_store::{ClientOptions, RetryConfig};

    use super::*;

    #[test]
    fn a_store_that_does_not_listen_is_named_in_one_line() {
        // Nobody listens at a port that was free a moment ago.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", free.local_addr().unwrap());
        drop(free);
        let store = AmazonS3Builder::new()
            .with_endpoint(&endpoint)
            .with_allow_http(true)
            .with_bucket_name("bucket")
            .with_region("us-east-1")
            .with_access_key_id("key")
            .with_secret_access_key("secret")
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_retry(RetryConfig {
                max_retries: 0,
                retry_timeout: Duration::from_secs(1),
                ..RetryConfig::default()
            })
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let refused = runtime.block_on(store.head(&ObjectPath::from("MANIFEST")));
        let error = ObjectError::Store {
            operation: "read",
            object: "MANIFEST".to_owned(),
            store: "s3://bucket/db".to_owned(),
            source: Box::new(refused.unwrap_err()),
            tries: 1,
        };
        assert_eq!(
            error.after(8).to_string(),
            format!(
                "cannot read MANIFEST in s3://bucket/db: no answer from {endpoint} (AWS_ENDPOINT): \
                 Connection refused; 8 tries"
            )
        );
    }

    #[test]
    fn of_an_answer_in_xml_its_code_and_message_are_said() {
        let error = object_store::Error::Generic {
            store: "S3",
            source: "Server returned non-2xx status code: 400 Bad Request: <?xml version=\"1.0\"?>\n<Error>\
                     <Code>InvalidBucketName</Code><Message>The bucket is not valid.</Message></Error>"
                .into(),
        };
        assert_eq!(
            answer(&error),
            "the store answers InvalidBucketName: The bucket is not valid."
        );
    }
}
