//! Addresses of databases: `s3://BUCKET/PREFIX`, and `file:///DIRECTORY` for a shared directory.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path as ObjectPath;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};
use url::Url;

use crate::error::{Asked, ObjectError};
use crate::stores::directory::DirectoryStore;
use crate::stores::plain_http::PlainHttp;
use crate::timing::Timing;

/// A store, and where in it a database lies.
#[derive(Debug)]
pub(crate) struct Location {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) prefix: ObjectPath,
    /// The address as paths of the storage begin.
    pub(crate) root: String,
}

/// Whether the text of `--db` names an object store (`s3://`, `file://`); else it is a directory.
pub fn is_address(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        ["s3", "s3a", "file"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

impl Location {
    /// Parses an address. Settings are pairs such as `AWS_REGION`, `AWS_ENDPOINT`: the
    /// environment's variables.
    pub(crate) fn parse(
        address: &str,
        settings: impl IntoIterator<Item = (String, String)>,
        timing: &Timing,
    ) -> Asked<Self> {
        let refuse = |what: String| ObjectError::Address {
            address: address.to_owned(),
            what,
        };
        let url = Url::parse(address).map_err(|error| refuse(error.to_string()))?;
        let root = address.trim_end_matches('/').to_owned();
        match url.scheme() {
            "s3" | "s3a" => {
                let prefix = ObjectPath::from_url_path(url.path())
                    .map_err(|error| refuse(error.to_string()))?;
                let bucket = url.host_str().filter(|bucket| !bucket.is_empty());
                let bucket = bucket.ok_or_else(|| refuse("it names no bucket".to_owned()))?;
                let store = s3(bucket, settings, timing);
                Ok(Self {
                    store: Arc::new(store.map_err(|error| refuse(error.to_string()))?),
                    prefix,
                    root,
                })
            }
            "file" => {
                let directory = url.to_file_path();
                let directory: PathBuf =
                    directory.map_err(|()| refuse("it names no directory".to_owned()))?;
                let store = DirectoryStore::create(&directory);
                Ok(Self {
                    store: Arc::new(store.map_err(|error| refuse(error.to_string()))?),
                    prefix: ObjectPath::default(),
                    root,
                })
            }
            other => Err(refuse(format!("unknown scheme {other}"))),
        }
    }
}

fn s3(
    bucket: &str,
    settings: impl IntoIterator<Item = (String, String)>,
    timing: &Timing,
) -> object_store::Result<impl ObjectStore> {
    let mut builder = AmazonS3Builder::new();
    // The client without certificates knows no settings, and reaches nobody who gives keys over
    // TLS.
    let (mut is_plain, mut has_key, mut is_set) = (false, false, false);
    for (name, value) in settings {
        let name = name.to_ascii_lowercase();
        // Others begin so too, which are for other programs.
        if let Some(key) = name
            .starts_with("aws_")
            .then(|| name.parse::<AmazonS3ConfigKey>().ok())
            .flatten()
        {
            match key {
                AmazonS3ConfigKey::Endpoint => is_plain = value.starts_with("http://"),
                AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp) => {}
                AmazonS3ConfigKey::AccessKeyId => has_key = true,
                AmazonS3ConfigKey::S3Endpoint | AmazonS3ConfigKey::Client(_) => is_set = true,
                _ => {}
            }
            builder = builder.with_config(key, value);
        }
    }
    let retry = RetryConfig {
        // Requests are tried again here, where it is known which may be.
        max_retries: 1,
        retry_timeout: timing.request,
        ..RetryConfig::default()
    };
    if is_plain && has_key && !is_set {
        builder = builder.with_http_connector(PlainHttp);
    }
    builder.with_bucket_name(bucket).with_retry(retry).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_directories() {
        for address in ["s3://bucket/a/b", "S3://bucket", "file:///var/db"] {
            assert!(is_address(address), "{address}");
        }
        for directory in ["db", "/var/db", "./s3:/x", "http://example.org/db"] {
            assert!(!is_address(directory), "{directory}");
        }
    }

    #[test]
    fn what_names_no_place_is_refused_with_what_to_write() {
        let parse = |address| Location::parse(address, [], &Timing::default());
        for address in ["s3:///prefix", "gs://bucket/db", "file://host/db", "db"] {
            let error = parse(address).unwrap_err().to_string();
            assert!(error.contains("s3://BUCKET/PREFIX"), "{error}");
        }
        let found = parse("s3://bucket/a/b/").unwrap();
        assert_eq!(found.prefix.as_ref(), "a/b");
        assert_eq!(found.root, "s3://bucket/a/b");
    }
}
