//! Bodies of streamed answers, and how an answer fails after it has begun.
//!
//! ```text
//! job -> chunks -> compressor -> first bytes -> head and bytes -> network
//!                                | an error before them: answered with its status (`around`)
//!                                | an error behind them: they are sent, then the transfer is broken
//!                                |                       off (`Outgoing`)
//! ```
//!
//! A compressor buffers much before it emits anything, and drops that when its input fails. So the
//! first bytes behind the compressor decide, not the first rows.

use crate::answer::error_response::ErrorResponse as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Sleep, sleep};

use orrery_service::errors::ServiceError;

/// How long the connection may send earlier bytes before the body reports an error.
///
/// A connection drops what it has gathered when a body fails, the head too: a client that had
/// nothing yet would not know that there was an answer, and a proxy would ask again.
const SENT_WITHIN: Duration = Duration::from_millis(20);

/// Makes a body of pieces. All streams of the server pass here: the compressor polls again after
/// the end, which not every stream survives.
pub(crate) fn streamed<S, P, E>(pieces: S) -> Body
where
    S: Stream<Item = Result<P, E>> + Send + 'static,
    P: Into<Bytes> + 'static,
    E: Into<BoxError> + 'static,
{
    Body::from_stream(pieces.fuse())
}

/// The answer ended early; the server's log has the reason, and so has [`Failed`] if it began here.
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off")]
pub(crate) struct BrokenOff;

/// Why a streamed answer failed.
///
/// The sender puts a copy into the response's extensions: then the head waits for the first bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failed(Arc<Mutex<Option<ServiceError>>>);

impl Failed {
    /// Sets the error; call this before the body fails.
    pub(crate) fn set(&self, error: ServiceError) {
        *self.0.lock() = Some(error);
    }

    fn take(&self) -> ServiceError {
        let mut error = self.0.lock();
        error.take().unwrap_or_else(|| ServiceError::Internal {
            message: "the request ended without an answer".to_owned(),
        })
    }
}

/// Middleware around the compressor: answers with the error where the body fails before its first
/// bytes.
pub(crate) async fn around(request: Request, next: Next) -> Response {
    let accept = request.headers().get(header::ACCEPT).cloned();
    let mut response = next.run(request).await;
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let failed = response.extensions_mut().remove::<Failed>();
    let (parts, mut body) = response.into_parts();
    let mut first = None;
    if let Some(failed) = failed {
        match poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            Some(Ok(frame)) => first = Some(frame),
            Some(Err(_)) => {
                let accept = accept.map(|accept| (header::ACCEPT, accept));
                let headers = HeaderMap::from_iter(accept);
                return failed.take().into_response_for(&headers);
            }
            None => body = Body::empty(),
        }
    }
    let body = Outgoing {
        first,
        body,
        failing: None,
    };
    Response::from_parts(parts, Body::new(body))
}

/// A body that fails only after its earlier bytes were sent.
struct Outgoing {
    first: Option<Frame<Bytes>>,
    body: Body,
    failing: Option<(axum::Error, Pin<Box<Sleep>>)>,
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if self.failing.is_none() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Err(error)) => self.failing = Some((error, Box::pin(sleep(SENT_WITHIN)))),
                sent => return Poll::Ready(sent),
            }
        }
        if let Some((_, wait)) = &mut self.failing {
            ready!(wait.as_mut().poll(context));
        }
        let error = self.failing.take().map(|(error, _)| Err(error));
        self.body = Body::empty();
        Poll::Ready(error)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.failing.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.first {
            None => self.body.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn what_was_sent_can_go_out_before_an_answer_breaks_off() {
        let pieces = [Ok(Bytes::from_static(b"rows")), Err(BrokenOff)];
        let mut body = Outgoing {
            first: None,
            body: streamed(futures::stream::iter(pieces)),
            failing: None,
        };
        assert!(matches!(body.frame().now_or_never(), Some(Some(Ok(_)))));
        // Pending at every poll meanwhile: the connection is written to.
        assert!(body.frame().now_or_never().is_none());
        assert!(body.frame().now_or_never().is_none());
        assert!(matches!(body.frame().await, Some(Err(_))));
        assert!(body.frame().await.is_none());
    }
}
