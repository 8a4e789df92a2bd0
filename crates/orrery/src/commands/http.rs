//! Requests to a running server, for commands with `--server URL`.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use orrery_storage::without_numbers;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use reqwest::{Body, Method, Response};
use url::Url;

use crate::failure::{Failure, PlaceInText};

/// How much of a file is read and sent at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// The address of one of the server's paths: `http://127.0.0.1:7878` and `graphs`.
pub(crate) fn server_url(server: &str, path: &str) -> Result<Url, Failure> {
    let bad = |reason: String| {
        Failure::Other(format!(
            "'{server}' is no server's address: {reason}; write for example http://127.0.0.1:7878"
        ))
    };
    let with_slash = format!("{}/", server.trim_end_matches('/'));
    let url = Url::parse(&with_slash).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it is not http or https".to_owned()));
    }
    url.join(path).map_err(|error| bad(error.to_string()))
}

/// How a server tells what is wrong with a request (RFC 9457).
pub(crate) const PROBLEM: &str = "application/problem+json";

/// What is read of it.
#[derive(serde::Deserialize)]
struct Problem {
    /// The line for people.
    detail: String,
    #[serde(flatten)]
    place: Option<PlaceInText>,
}

/// Sends a text, and gives the answer's text, or the server's line on what is wrong, with the place in the text.
pub(crate) fn post_text(url: Url, content_type: &str, text: &str) -> Result<String, Failure> {
    let runtime = super::query_text::runtime()?;
    let wanted = format!("*/*, {PROBLEM}");
    let headers = [(CONTENT_TYPE, content_type), (ACCEPT, wanted.as_str())];
    let body = Body::from(text.to_owned());
    let sent = runtime.block_on(send(Method::POST, url, &headers, body));
    sent.map_err(|failure| failure.of_sent_text(text))
}

/// Sends a body, and gives the answer's text, or the server's line on what is wrong.
pub(crate) fn post(url: Url, content_type: &str, body: Body) -> Result<String, Failure> {
    let runtime = super::query_text::runtime()?;
    let headers = [(CONTENT_TYPE, content_type)];
    runtime.block_on(send(Method::POST, url, &headers, body))
}

/// Asks for what has an address, and gives it, or the server's line on what is wrong.
pub(crate) fn get(url: Url) -> Result<String, Failure> {
    let runtime = super::query_text::runtime()?;
    runtime.block_on(send(Method::GET, url, &[], Body::default()))
}

/// Sends a file, or standard input for `-`, read as it is sent.
pub(crate) fn post_file(url: Url, content_type: &str, path: &Path) -> Result<String, Failure> {
    let input: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| Failure::file(path, error))?)
    };
    let chunks = futures::stream::unfold(Some(input), |input| async {
        let mut input = input?;
        let mut chunk = vec![0; CHUNK_BYTES];
        // Nothing else runs on this runtime that could be held up.
        match input.read(&mut chunk) {
            Ok(0) => None,
            Ok(length) => {
                chunk.truncate(length);
                Some((Ok(chunk), Some(input)))
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                Some((Ok(Vec::new()), Some(input)))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    post(url, content_type, Body::wrap_stream(chunks))
}

async fn send(
    method: Method,
    url: Url,
    headers: &[(HeaderName, &str)],
    body: Body,
) -> Result<String, Failure> {
    let shown = url.to_string();
    let response = answer(method, url, headers, body).await?;
    let text = response
        .text()
        .await
        .map_err(|error| failed(&shown, &error))?;
    Ok(if text.is_empty() || text.ends_with('\n') {
        text
    } else {
        text + "\n"
    })
}

/// What befell a request, in one line.
pub(crate) fn failed(shown: &str, error: &reqwest::Error) -> Failure {
    // The error itself says only that a request failed; the last of its sources says of what.
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let cause = without_numbers(&cause.to_string());
    Failure::Other(match error.is_connect() {
        true => format!("{shown}: {cause}; is a server listening there?"),
        false => format!("{shown}: {cause}"),
    })
}

/// The answer to a request, whose body is still to come; or the server's line on what is wrong.
pub(crate) async fn answer(
    method: Method,
    url: Url,
    headers: &[(HeaderName, &str)],
    body: Body,
) -> Result<Response, Failure> {
    let shown = url.to_string();
    let failed = |error: reqwest::Error| failed(&shown, &error);
    let client = reqwest::Client::builder().no_proxy().build();
    let mut request = client.map_err(failed)?.request(method, url).body(body);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let is_problem = response.headers().get(CONTENT_TYPE).is_some_and(|it| {
        let it = it.to_str().unwrap_or_default();
        it.starts_with(PROBLEM)
    });
    let text = response.text().await.map_err(failed)?;
    let problem = is_problem.then(|| serde_json::from_str::<Problem>(&text).ok());
    let (line, place) = match problem.flatten() {
        Some(problem) => (problem.detail, problem.place),
        None => (text, None),
    };
    Err(Failure::Refused {
        message: format!("{shown}: {status}: {}", line.trim()),
        place,
        excerpt: None,
    })
}
