//! What becomes of a body that its request's answer did not wait for, such as that of who may not change what they would.
//!
//! ```text
//! request -> its body, watched -> handlers -> answer -> all read: as it is
//!                                                    -> a small rest, which is on its way: read and dropped
//!                                                    -> anything else: `Connection: close`
//! ```
//!
//! The rest of a body stands where the next request would begin, so a connection with one is over (hyper closes it, unless the rest has come by then). Whether it is has to be said with
//! the answer: a client that is not told sends its next request, and nobody answers that.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Response, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;

/// So much of a rest is read.
const REST_BYTES_MAX: usize = 64 << 10;
/// A rest is waited for so long.
const REST_TIME_MAX: Duration = Duration::from_millis(250);

/// A request's body of which is known how far it was read.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    /// Taken when it goes.
    body: Option<Incoming>,
    /// None where nothing is to be read.
    place: Option<Arc<Mutex<Place>>>,
}

/// Where a body is.
#[derive(Debug)]
enum Place {
    /// With who answers the request.
    Read,
    /// It was given up before its end.
    GivenUp(Incoming),
    /// All of it was read.
    Ended,
}

/// The body of a request that is being answered.
#[derive(Debug)]
pub(crate) struct Unread {
    place: Arc<Mutex<Place>>,
    /// Its client waits to be told that the body is wanted.
    is_held_back: bool,
}

/// Watches the body of a request with these headers; nothing is to be done behind the answer where there is none.
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
    /// Passes over what is left of the body, or says with the answer that the connection ends.
    pub(crate) async fn settle<B>(self, response: &mut Response<B>) {
        let place = std::mem::replace(&mut *self.place.lock(), Place::Read);
        let is_passed = match place {
            Place::Ended => true,
            // It may be read while the answer is sent, or not.
            Place::Read => false,
            Place::GivenUp(_) if self.is_held_back => false,
            // Large, and rare.
            Place::GivenUp(rest) => Box::pin(pass(rest)).await,
        };
        if !is_passed {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
    }
}

/// Whether a rest came to its end.
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
