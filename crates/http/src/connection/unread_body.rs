//! Handles the rest of a request body that its answer did not wait for, such as that of a refused
//! change.
//!
//! ```text
//! request -> its body, watched -> handlers -> answer -> all read: nothing to do
//!                                                    -> a small rest, on its way: read and dropped
//!                                                    -> anything else: `Connection: close`
//! ```
//!
//! The rest of a body stands where the next request would begin, so its connection cannot go on
//! (hyper closes it, unless the rest has come by then). The answer has to say so: a client that
//! does not know sends its next request, and nobody answers that.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Response, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;

/// Most bytes of a rest that are read.
const REST_BYTES_MAX: usize = 64 << 10;
/// How long a rest is waited for.
const REST_TIME_MAX: Duration = Duration::from_millis(250);

/// A request's body that notes how far it was read.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    /// Taken when this is dropped.
    body: Option<Incoming>,
    /// None where there is nothing to read.
    place: Option<Arc<Mutex<Place>>>,
}

/// How far a body was read, and who holds it.
#[derive(Debug)]
enum Place {
    /// The handler holds it.
    Read,
    /// The handler dropped it before its end.
    GivenUp(Incoming),
    /// All of it was read.
    Ended,
}

/// The body of a request that is being answered.
#[derive(Debug)]
pub(crate) struct Unread {
    place: Arc<Mutex<Place>>,
    /// The client sends the body only after `100 Continue`.
    is_held_back: bool,
}

/// Watches the body of a request with these headers; the second part is none if there is no body.
pub(crate) fn watch(headers: &HeaderMap, body: Incoming) -> (WatchedBody, Option<Unread>) {
    let place = (!body.is_end_stream()).then(|| Arc::new(Mutex::new(Place::Read)));
    let unread = place.as_ref().map(|place| Unread {
        place: Arc::clone(place),
        is_held_back: headers.contains_key(header::EXPECT),
    });
    let body = Some(body);
    (WatchedBody { body, place }, unread)
}

impl Unread {
    /// Reads and drops the rest of the body, or announces in the answer that the connection closes.
    pub(crate) async fn settle<B>(self, response: &mut Response<B>) {
        let place = std::mem::replace(&mut *self.place.lock(), Place::Read);
        let is_passed = match place {
            Place::Ended => true,
            // Whether it will be read while the answer is sent is not known.
            Place::Read => false,
            Place::GivenUp(_) if self.is_held_back => false,
            // Boxed: large, and rare.
            Place::GivenUp(rest) => Box::pin(pass(rest)).await,
        };
        if !is_passed {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
    }
}

/// Reads a rest to its end; false if it is too long or too slow.
async fn pass(mut rest: Incoming) -> bool {
    let passing = async {
        let mut left = REST_BYTES_MAX;
        while rest.size_hint().lower() <= left as u64 {
            match rest.frame().await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, Bytes::len);
                    let Some(fewer) = left.checked_sub(bytes) else {
                        return false;
                    };
                    left = fewer;
                }
            }
        }
        false
    };
    let passed = tokio::time::timeout(REST_TIME_MAX, passing).await;
    passed.unwrap_or(false)
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None))
            && let Some(place) = self.place.take()
        {
            *place.lock() = Place::Ended;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        if let (Some(body), Some(place)) = (self.body.take(), self.place.take()) {
            *place.lock() = match body.is_end_stream() {
                true => Place::Ended,
                false => Place::GivenUp(body),
            };
        }
    }
}
