//! Requests to a running server, for commands with `--server URL`.

use std::path::{Path, PathBuf};

use orrery_storage::without_numbers;
use percent_encoding::percent_decode_str;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use reqwest::{Body, Method, Response};
use url::Url;

use crate::failure::{Failure, PlaceInText};

/// The URL of one of the server's paths: `http://127.0.0.1:7878` and `graphs`.
pub(crate) fn server_url(server: &str, path: &str) -> Result<Url, Failure> {
    let bad = |reason: String| {
        let server = server.rsplit('@').next().unwrap_or_default();
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

/// The credentials for a server: from its URL, or from the environment, which other users of the
/// machine do not see.
#[derive(Debug, PartialEq, Eq)]
enum Credentials {
    Key(String),
    Password { name: String, password: String },
}

/// Environment variables with credentials.
const KEY_VARIABLE: &str = "ORRERY_KEY";
const USER_VARIABLE: &str = "ORRERY_USER";
const PASSWORD_VARIABLE: &str = "ORRERY_PASSWORD";

/// Environment variable that names a file (PEM) of certificates to trust beside the public ones.
const CA_VARIABLE: &str = "ORRERY_CA_FILE";

impl Credentials {
    /// Reads the credentials. `variable` looks up an environment variable.
    fn of(url: &Url, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        if !url.username().is_empty() {
            return Some(Self::Password {
                name: plain(url.username()),
                password: plain(url.password().unwrap_or_default()),
            });
        }
        if let Some(key) = set(KEY_VARIABLE) {
            return Some(Self::Key(key));
        }
        let name = set(USER_VARIABLE)?;
        let password = set(PASSWORD_VARIABLE).unwrap_or_default();
        Some(Self::Password { name, password })
    }
}

/// A URL for messages, without its password.
pub(crate) fn shown(url: &Url) -> String {
    without_credentials(url.clone()).to_string()
}

fn without_credentials(mut url: Url) -> Url {
    // A URL without a host has no credentials either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

/// Media type of a server's error reports (RFC 9457).
pub(crate) const PROBLEM: &str = "application/problem+json";

/// The fields of an error report that are read.
#[derive(serde::Deserialize)]
struct Problem {
    /// The line for people.
    detail: String,
    #[serde(flatten)]
    place: Option<PlaceInText>,
}

/// Posts a text; returns the answer's text, or the server's error with its place in the text.
pub(crate) fn post_text(url: Url, content_type: &str, text: &str) -> Result<String, Failure> {
    let runtime = super::query_text::runtime()?;
    let wanted = format!("*/*, {PROBLEM}");
    let headers = [(CONTENT_TYPE, content_type), (ACCEPT, wanted.as_str())];
    let body = Body::from(text.to_owned());
    let sent = runtime.block_on(send(Method::POST, url, &headers, body));
    sent.map_err(|failure| failure.of_sent_text(text))
}

/// Posts a body; returns the answer's text, or the server's error.
pub(crate) fn post(url: Url, content_type: &str, body: Body) -> Result<String, Failure> {
    let runtime = super::query_text::runtime()?;
    let headers = [(CONTENT_TYPE, content_type)];
    runtime.block_on(send(Method::POST, url, &headers, body))
}

/// Gets a URL; returns the answer's text, or the server's error.
pub(crate) fn get(url: Url) -> Result<String, Failure> {
    let runtime = super::query_text::runtime()?;
    runtime.block_on(send(Method::GET, url, &[], Body::default()))
}

/// Deletes a URL; returns the answer's text, or the server's error.
pub(crate) fn delete(url: Url) -> Result<String, Failure> {
    let runtime = super::query_text::runtime()?;
    runtime.block_on(send(Method::DELETE, url, &[], Body::default()))
}

async fn send(
    method: Method,
    url: Url,
    headers: &[(HeaderName, &str)],
    body: Body,
) -> Result<String, Failure> {
    let shown = shown(&url);
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

/// The failure of a request, in one line.
pub(crate) fn failed(shown: &str, error: &reqwest::Error) -> Failure {
    // The error itself only says that a request failed; its innermost source says why.
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

/// Adds the certificates of the file that the environment names.
fn trusting(client: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, Failure> {
    let Some((path, pem)) = authorities_file()? else {
        return Ok(client);
    };
    let config = orrery_tls::client_trusting(&pem);
    let config = config.map_err(|reason| unusable(&path, &reason))?;
    Ok(client.use_preconfigured_tls(config))
}

/// The file of certificates that the environment names, if any, and its contents.
fn authorities_file() -> Result<Option<(PathBuf, Vec<u8>)>, Failure> {
    let Some(path) = std::env::var_os(CA_VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(path);
    let pem = std::fs::read(&path).map_err(|error| Failure::file(&path, error))?;
    Ok(Some((path, pem)))
}

fn unusable(path: &Path, reason: &str) -> Failure {
    let path = path.display();
    Failure::Other(format!("the environment's {CA_VARIABLE}, {path}: {reason}"))
}

/// The certificates of the file that the environment names, if any.
pub(crate) fn authorities() -> Result<Vec<reqwest::Certificate>, Failure> {
    let Some((path, pem)) = authorities_file()? else {
        return Ok(Vec::new());
    };
    let certificates = reqwest::Certificate::from_pem_bundle(&pem);
    let certificates = certificates.map_err(|error| unusable(&path, &error.to_string()))?;
    if certificates.is_empty() {
        return Err(unusable(&path, "it has no certificate"));
    }
    Ok(certificates)
}

/// Sends a request; returns the response, whose body is still to be read, or the server's error.
pub(crate) async fn answer(
    method: Method,
    url: Url,
    headers: &[(HeaderName, &str)],
    body: Body,
) -> Result<Response, Failure> {
    let shown = shown(&url);
    let failed = |error: reqwest::Error| failed(&shown, &error);
    let client = trusting(reqwest::Client::builder().no_proxy())?.build();
    let credentials = Credentials::of(&url, |name| std::env::var(name).ok());
    let request = client.map_err(failed)?;
    let mut request = request.request(method, without_credentials(url)).body(body);
    request = match credentials {
        Some(Credentials::Key(key)) => request.bearer_auth(key),
        Some(Credentials::Password { name, password }) => request.basic_auth(name, Some(password)),
        None => request,
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(url: &str, variables: &[(&str, &str)]) -> Option<Credentials> {
        Credentials::of(&Url::parse(url).unwrap(), |name| {
            let mut set = variables.iter();
            set.find(|(other, _)| *other == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    fn password(name: &str, password: &str) -> Option<Credentials> {
        let (name, password) = (name.to_owned(), password.to_owned());
        Some(Credentials::Password { name, password })
    }

    #[test]
    fn who_asks_stands_in_the_address_or_in_the_environment() {
        let of_ann = [("ORRERY_USER", "ann"), ("ORRERY_PASSWORD", "secret")];
        let key = ("ORRERY_KEY", "orr_x_y");
        assert_eq!(credentials("http://h/", &[]), None);
        assert_eq!(credentials("http://h/", &[("ORRERY_KEY", "")]), None);
        assert_eq!(credentials("http://h/", &of_ann), password("ann", "secret"));
        assert_eq!(
            credentials("http://h/", &[of_ann[0], key]),
            Some(Credentials::Key("orr_x_y".to_owned()))
        );
        assert_eq!(
            credentials("http://b%C3%B6b:p%3Aw@h/", &[key]),
            password("böb", "p:w")
        );
    }

    #[test]
    fn messages_show_nobodys_password() {
        let url = server_url("http://ann:secret@127.0.0.1:1", "graphs").unwrap();
        assert_eq!(shown(&url), "http://127.0.0.1:1/graphs");
        let bad = server_url("ftp://ann:secret@h", "graphs").unwrap_err();
        assert!(!bad.to_string().contains("secret"), "{bad}");
    }
}
