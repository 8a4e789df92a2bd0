//! Bodies of answers that are streamed, and how an answer fails that has begun.
//!
//! ```text
//! job -> chunks -> compressor -> first bytes -> head and bytes -> network
//!                                 | an error before them: the answer is that error, with its status (`around`)
//!                                 | an error behind them: the transfer is broken off, once they were sent (`Outgoing`)
//! ```
//!
//! A compressor takes in much before it gives anything out, and forgets what it has when its input fails: so it is what comes out of it that
//! decides, and not that rows were written.

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

/// How long the connection has, before it hears of an error, to send what came before it: when a body fails, it drops what it has gathered, the head too. A client that
/// had nothing yet would not be told that there was an answer; a proxy would ask again.
const SENT_WITHIN: Duration = Duration::from_millis(20);

/// Pieces as a body. All that the server streams goes through here: the compressor asks again after the end, which not every stream can bear.
pub(crate) fn streamed<S, P, E>(pieces: S) -> Body
where
    S: Stream<Item = Result<P, E>> + Send + 'static,
    P: Into<Bytes> + 'static,
    E: Into<BoxError> + 'static,
{
    Body::from_stream(pieces.fuse())
}

/// The answer did not come to its end; the reason is in the server's log, and where it has begun for the server alone, in [`Failed`].
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off")]
pub(crate) struct BrokenOff;

/// Why a streamed answer failed. Who streams puts a copy into the response's extensions: then its head waits for its first bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failed(Arc<Mutex<Option<ServiceError>>>);

impl Failed {
    /// To be said before the body fails.
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

/// Middleware, around the compressor: what fails before its first bytes is answered with its error.
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

/// A body that fails only when what came before was sent.
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
        // Nothing is ready now, however often it is asked: the connection is written to.
        assert!(body.frame().now_or_never().is_none());
        assert!(body.frame().now_or_never().is_none());
        assert!(matches!(body.frame().await, Some(Err(_))));
        assert!(body.frame().await.is_none());
    }
}
