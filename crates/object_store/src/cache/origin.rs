//! The origin of cached bytes: the object store, or a stand-in of tests. The store of objects is
//! one such place, and tests have theirs.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;
use futures::future::BoxFuture;
use orrery_storage::Result;

/// Where bytes come from: the object store.
pub(crate) trait Origin: Debug + Send + Sync + 'static {
    /// The bytes of a range within an object. Ends by itself, with an error if need be.
    fn get_range<'a>(&'a self, key: &'a str, range: Range<u64>) -> BoxFuture<'a, Result<Bytes>>;
}
