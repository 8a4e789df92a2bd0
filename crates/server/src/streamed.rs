//! Bodies of answers that are streamed.

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt};

/// Pieces as a body. All that the server streams goes through here: the compressor asks again after the end, which not every stream can bear.
pub(crate) fn streamed<S, P, E>(pieces: S) -> Body
where
    S: Stream<Item = Result<P, E>> + Send + 'static,
    P: Into<Bytes> + 'static,
    E: Into<BoxError> + 'static,
{
    Body::from_stream(pieces.fuse())
}
