//! A server as the target of SQL statements: `POST /sql`, with rows as an Arrow stream.

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use futures::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Body, Method, Response};
use url::Url;

use super::answer::{Answer, Rows};
use crate::commands::http::{PROBLEM, answer, failed, server_url, shown};
use crate::failure::Failure;

const ARROW: &str = "application/vnd.apache.arrow.stream";
/// Header with the command tag.
const TAG: &str = "orrery-tag";

/// A running server.
pub(super) struct Server {
    url: Url,
}

impl Server {
    pub(super) fn at(address: &str) -> Result<Self, Failure> {
        let url = server_url(address, "sql")?;
        Ok(Self { url })
    }

    /// Sends a text, whose statements are one transaction there; the answer is that of the last
    /// statement.
    pub(super) async fn execute(&self, text: &str) -> Result<Answer, Failure> {
        let wanted = format!("{ARROW}, {PROBLEM};q=0.1");
        let headers = [(CONTENT_TYPE, "application/sql"), (ACCEPT, wanted.as_str())];
        let body = Body::from(text.to_owned());
        let response = answer(Method::POST, self.url.clone(), &headers, body).await?;
        let header = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let tag = header(TAG);
        if header(CONTENT_TYPE.as_str()).is_none_or(|it| it != ARROW) {
            return Ok(Answer {
                rows: None,
                copy: None,
                tag,
            });
        }
        let mut reader = Reader::new(response, shown(&self.url));
        let first = reader.next().await?;
        let schema = reader.decoder.schema().ok_or_else(|| reader.broken())?;
        let first = futures::stream::iter(first.map(Ok));
        let others = futures::stream::unfold(Some(reader), |reader| async {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(batch)) => Some((Ok(batch), Some(reader))),
                Ok(None) => None,
                Err(failure) => Some((Err(failure), None)),
            }
        });
        let batches = first.chain(others).boxed();
        Ok(Answer {
            copy: None,
            rows: Some(Rows { schema, batches }),
            tag,
        })
    }
}

/// Decodes batches from the pieces of a body.
struct Reader {
    response: Response,
    shown: String,
    decoder: StreamDecoder,
    /// Bytes received and not decoded yet.
    piece: Buffer,
}

impl Reader {
    fn new(response: Response, shown: String) -> Self {
        Self {
            response,
            shown,
            decoder: StreamDecoder::new(),
            piece: Buffer::from(Vec::<u8>::new()),
        }
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        loop {
            let decoded = self.decoder.decode(&mut self.piece);
            if let Some(batch) = decoded.map_err(|error| self.undecoded(&error))? {
                return Ok(Some(batch));
            }
            let piece = self.response.chunk().await;
            match piece.map_err(|error| failed(&self.shown, &error))? {
                Some(piece) => self.piece = Buffer::from(piece),
                None => {
                    let end = self.decoder.finish();
                    end.map_err(|error| self.undecoded(&error))?;
                    return Ok(None);
                }
            }
        }
    }

    fn undecoded(&self, error: &ArrowError) -> Failure {
        Failure::Other(format!("{}: {error}", self.shown))
    }

    fn broken(&self) -> Failure {
        Failure::Other(format!("{}: the answer has no columns", self.shown))
    }
}
