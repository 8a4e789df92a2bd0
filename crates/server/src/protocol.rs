//! From an HTTP request to the operation it asks for: the SPARQL 1.1 Protocol, 2.1 and 2.2.
//!
//! <https://www.w3.org/TR/sparql11-protocol/>
//!
//! | request | query | parameters |
//! | --- | --- | --- |
//! | GET `/sparql?query=...` | in the URL | in the URL |
//! | POST, `application/x-www-form-urlencoded` | in the body | in the body or the URL |
//! | POST, `application/sparql-query` | is the body | in the URL |
//!
//! Updates come by the two forms of POST: parameter `update`, or `application/sparql-update`.
//!
//! Everything here works on bytes in memory; nothing is executed. Text must be
//! UTF-8, also behind percent escapes: a lossy decoding would run another query than the
//! one that was sent.

use crate::errors::ServerError;
use axum::http::{HeaderMap, Method, header};
use std::time::Duration;

/// A query as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct QueryRequest {
    pub(crate) query: String,
    /// `default-graph-uri`, which wins over FROM in the query.
    pub(crate) default_graphs: Vec<String>,
    /// `named-graph-uri`, which wins over FROM NAMED.
    pub(crate) named_graphs: Vec<String>,
    /// `timeout`: what the client is willing to wait.
    pub(crate) timeout: Option<Duration>,
    /// `format` or `output`: a format by name rather than by `Accept`.
    pub(crate) format: Option<String>,
    /// `at`: the commit, or the time, whose state is read.
    pub(crate) at: Option<String>,
}

/// An update as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UpdateRequest {
    pub(crate) update: String,
    /// `using-graph-uri`.
    pub(crate) using_graphs: Vec<String>,
    /// `using-named-graph-uri`.
    pub(crate) using_named_graphs: Vec<String>,
    /// `timeout`: how long each `WHERE` may take.
    pub(crate) timeout: Option<Duration>,
    /// `durability=relaxed`: the answer does not wait for the disk.
    pub(crate) is_relaxed: bool,
}

/// What a request to the endpoint asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Run a query.
    Query(QueryRequest),
    /// Make a change.
    Update(UpdateRequest),
    /// GET without parameters: what can this endpoint do?
    Describe {
        /// `format` or `output`.
        format: Option<String>,
    },
}

/// Reads a request to `/sparql` or `/explain`.
pub(crate) fn parse(
    method: &Method,
    url_query: Option<&str>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Operation, ServerError> {
    let mut parameters = Parameters::default();
    parameters.add(url_query.unwrap_or("").as_bytes())?;
    if method == Method::POST {
        parameters.add_body(headers, body)?;
    } else if parameters.update_count > 0 {
        return Err(ServerError::bad_request(
            "an update must be sent by POST, not by GET",
        ));
    }
    parameters.into_operation(method)
}

/// Parameters in the making, from the URL and the body.
#[derive(Default)]
struct Parameters {
    request: QueryRequest,
    update: UpdateRequest,
    query_count: usize,
    update_count: usize,
    has_any: bool,
}

impl Parameters {
    /// Adds the `name=value&...` of a URL or a form. Unknown names are other programs' business.
    fn add(&mut self, encoded: &[u8]) -> Result<(), ServerError> {
        for (name, value) in pairs(encoded) {
            let name = decode_form(name, "a parameter name")?;
            self.set(&name, value)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), ServerError> {
        self.has_any = true;
        let text = || decode_form(value, &format!("parameter `{name}`"));
        match name {
            "query" => {
                self.query_count += 1;
                self.request.query = text()?;
            }
            "update" => {
                self.update_count += 1;
                self.update.update = text()?;
            }
            "using-graph-uri" => push_graph(&mut self.update.using_graphs, text()?)?,
            "using-named-graph-uri" => push_graph(&mut self.update.using_named_graphs, text()?)?,
            "durability" => self.update.is_relaxed = parse_durability(&text()?)?,
            "at" => self.request.at = Some(text()?),
            "default-graph-uri" => push_graph(&mut self.request.default_graphs, text()?)?,
            "named-graph-uri" => push_graph(&mut self.request.named_graphs, text()?)?,
            "timeout" => self.request.timeout = Some(parse_timeout(&text()?)?),
            "format" | "output" => self.request.format = Some(text()?),
            _ => {}
        }
        Ok(())
    }

    fn add_body(&mut self, headers: &HeaderMap, body: &[u8]) -> Result<(), ServerError> {
        let content_type = ContentType::of(headers)?;
        match content_type.media_type.as_str() {
            "application/x-www-form-urlencoded" => self.add(body),
            "application/sparql-query" => {
                self.query_count += 1;
                self.request.query = text_of_body("query", body)?;
                Ok(())
            }
            "application/sparql-update" => {
                self.update_count += 1;
                self.update.update = text_of_body("update", body)?;
                Ok(())
            }
            other => Err(ServerError::unsupported_media_type(format!(
                "neither a query nor an update can be sent as `{other}`; {POST_TYPES}"
            ))),
        }
    }

    fn into_operation(self, method: &Method) -> Result<Operation, ServerError> {
        if self.query_count > 0 && self.update_count > 0 {
            return Err(ServerError::bad_request(
                "the request has both a query and an update; send one of them",
            ));
        }
        if self.update_count > 0 {
            return self.into_update();
        }
        match self.query_count {
            1 => Ok(Operation::Query(self.request)),
            0 if method != Method::POST && self.is_bare() => Ok(Operation::Describe {
                format: self.request.format,
            }),
            0 => Err(ServerError::bad_request(
                "the request has no query; send it as parameter `query`, or by POST as \
                 application/sparql-query",
            )),
            count => Err(ServerError::bad_request(format!(
                "the request has {count} queries; send one at a time"
            ))),
        }
    }

    fn into_update(self) -> Result<Operation, ServerError> {
        if self.update_count > 1 {
            return Err(ServerError::bad_request(format!(
                "the request has {} updates; send one, which may have several operations",
                self.update_count
            )));
        }
        if self.request.at.is_some() {
            return Err(ServerError::bad_request(
                "`at` is for queries; the past cannot be changed",
            ));
        }
        Ok(Operation::Update(UpdateRequest {
            timeout: self.request.timeout,
            ..self.update
        }))
    }

    /// True if nothing but a format was given.
    fn is_bare(&self) -> bool {
        let request = &self.request;
        !self.has_any
            || (request.format.is_some()
                && request.default_graphs.is_empty()
                && request.named_graphs.is_empty()
                && request.timeout.is_none()
                && request.at.is_none())
    }
}

const POST_TYPES: &str = "use application/sparql-query, application/sparql-update, or \
                          application/x-www-form-urlencoded with a parameter `query` or `update`";

fn text_of_body(what: &str, body: &[u8]) -> Result<String, ServerError> {
    std::str::from_utf8(body)
        .map(str::to_owned)
        .map_err(|error| {
            ServerError::bad_request(format!(
                "the {what} is not UTF-8: invalid byte at offset {}",
                error.valid_up_to()
            ))
        })
}

/// `relaxed` or `durable`.
pub(crate) fn parse_durability(text: &str) -> Result<bool, ServerError> {
    match text {
        "relaxed" => Ok(true),
        "durable" => Ok(false),
        other => Err(ServerError::bad_request(format!(
            "durability `{other}` is unknown; it can be `durable` or `relaxed`"
        ))),
    }
}

/// The decoded `name=value` pairs of a URL, in order.
pub(crate) fn url_parameters(
    url_query: Option<&str>,
) -> Result<Vec<(String, String)>, ServerError> {
    pairs(url_query.unwrap_or_default().as_bytes())
        .map(|(name, value)| {
            let name = decode_form(name, "a parameter name")?;
            let value = decode_form(value, &format!("parameter `{name}`"))?;
            Ok((name, value))
        })
        .collect()
}

/// The encoded names and values of `name=value&...`.
fn pairs(encoded: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let pairs = encoded.split(|&byte| byte == b'&');
    pairs.filter(|pair| !pair.is_empty()).map(|pair| {
        let split = pair.iter().position(|&byte| byte == b'=');
        split.map_or((pair, &[][..]), |at| (&pair[..at], &pair[at + 1..]))
    })
}

/// More graphs than anyone names by hand; each becomes part of the plan.
const GRAPHS_MAX: usize = 1000;

fn push_graph(graphs: &mut Vec<String>, graph: String) -> Result<(), ServerError> {
    if graphs.len() >= GRAPHS_MAX {
        return Err(ServerError::bad_request(format!(
            "more than {GRAPHS_MAX} graphs in one request"
        )));
    }
    graphs.push(graph);
    Ok(())
}

/// A `Content-Type` whose charset is one we read.
struct ContentType {
    media_type: String,
}

impl ContentType {
    fn of(headers: &HeaderMap) -> Result<Self, ServerError> {
        let Some(value) = headers.get(header::CONTENT_TYPE) else {
            return Err(ServerError::unsupported_media_type(format!(
                "the request has no Content-Type; {POST_TYPES}"
            )));
        };
        let text = value.to_str().map_err(|_| {
            ServerError::unsupported_media_type("the Content-Type is not ASCII text".to_owned())
        })?;
        let mut parts = text.split(';');
        let media_type = parts.next().unwrap_or("").trim().to_ascii_lowercase();
        let charset = parts
            .filter_map(|parameter| parameter.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
            .map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase());
        match charset.as_deref() {
            // ASCII is a subset of UTF-8.
            None | Some("utf-8" | "utf8" | "us-ascii") => Ok(Self { media_type }),
            Some(other) => Err(ServerError::unsupported_media_type(format!(
                "charset `{other}` is not supported; send UTF-8"
            ))),
        }
    }
}

/// `30`, `0.5`, `30s` are seconds, `500ms` milliseconds, `2m` or `2min` minutes.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, ServerError> {
    let bad = || {
        ServerError::bad_request(format!(
            "timeout `{text}` is not a time; write seconds (`30`, `0.5`) or `500ms`"
        ))
    };
    let trimmed = text.trim();
    let unit_at = trimmed
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(unit_at);
    let seconds_per_unit = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        _ => return Err(bad()),
    };
    let number: f64 = number.parse().map_err(|_| bad())?;
    let timeout = Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|_| bad())?;
    if timeout.is_zero() {
        return Err(bad());
    }
    Ok(timeout)
}

/// Decodes `+` and `%XX` (application/x-www-form-urlencoded) into text.
fn decode_form(encoded: &[u8], what: &str) -> Result<String, ServerError> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => match hex_pair(tail) {
                Some(value) => {
                    decoded.push(value);
                    rest = &tail[2..];
                }
                // A stray percent sign stands for itself (URL Standard, 5.1).
                None => decoded.push(b'%'),
            },
            other => decoded.push(other),
        }
    }
    String::from_utf8(decoded).map_err(|_| ServerError::bad_request(format!("{what} is not UTF-8")))
}

fn hex_pair(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let high = digit(*text.first()?)?;
    let low = digit(*text.get(1)?)?;
    u8::try_from(high * 16 + low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderValue, StatusCode};
    use proptest::prelude::*;

    fn get(url_query: &str) -> Result<Operation, ServerError> {
        parse(&Method::GET, Some(url_query), &HeaderMap::new(), b"")
    }

    fn post(
        content_type: &'static str,
        url_query: &str,
        body: &[u8],
    ) -> Result<Operation, ServerError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        parse(&Method::POST, Some(url_query), &headers, body)
    }

    fn query_of(result: Result<Operation, ServerError>) -> QueryRequest {
        match result.unwrap() {
            Operation::Query(request) => request,
            other => panic!("{other:?}"),
        }
    }

    fn status_of(result: Result<Operation, ServerError>) -> StatusCode {
        result.unwrap_err().status()
    }

    const FORM: &str = "application/x-www-form-urlencoded";
    const DIRECT: &str = "application/sparql-query";

    #[test]
    fn the_three_ways_to_send_a_query_are_the_same() {
        let expected = QueryRequest {
            query: "ASK {}".to_owned(),
            default_graphs: vec!["http://a/".to_owned(), "http://b/".to_owned()],
            named_graphs: vec!["http://c/?x=1&y".to_owned()],
            ..QueryRequest::default()
        };
        let graphs = "default-graph-uri=http://a/&default-graph-uri=http%3A%2F%2Fb%2F\
                      &named-graph-uri=http://c/%3Fx%3D1%26y";
        let full = format!("query=ASK+%7b%7D&{graphs}");
        assert_eq!(query_of(get(&full)), expected);
        assert_eq!(query_of(post(FORM, "", full.as_bytes())), expected);
        assert_eq!(
            query_of(post(
                "application/x-www-form-urlencoded; charset=UTF-8",
                graphs,
                b"query=ASK%20%7B%7D"
            )),
            expected
        );
        assert_eq!(query_of(post(DIRECT, graphs, b"ASK {}")), expected);
        assert_eq!(
            query_of(post(
                "application/sparql-query;charset=\"utf-8\"",
                graphs,
                b"ASK {}"
            )),
            expected
        );
    }

    #[test]
    fn wrong_numbers_of_queries_and_updates_are_refused() {
        assert_eq!(
            status_of(get("query=ASK{}&query=ASK{}")),
            StatusCode::BAD_REQUEST
        );
        assert_eq!(
            status_of(post(FORM, "query=ASK{}", b"query=ASK{}")),
            StatusCode::BAD_REQUEST
        );
        assert_eq!(
            status_of(post(DIRECT, "query=ASK{}", b"ASK{}")),
            StatusCode::BAD_REQUEST
        );
        assert_eq!(status_of(post(FORM, "", b"")), StatusCode::BAD_REQUEST);
        assert_eq!(
            status_of(get("default-graph-uri=http://a/")),
            StatusCode::BAD_REQUEST
        );
        assert_eq!(
            status_of(post(FORM, "", b"query=ASK{}&update=CLEAR+ALL")),
            StatusCode::BAD_REQUEST
        );
        assert_eq!(status_of(get("update=CLEAR+ALL")), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn the_two_ways_to_send_an_update_are_the_same() {
        let expected = Operation::Update(UpdateRequest {
            update: "CLEAR ALL".to_owned(),
            using_graphs: vec!["http://a/".to_owned()],
            using_named_graphs: vec!["http://b/".to_owned()],
            timeout: Some(Duration::from_secs(3)),
            is_relaxed: true,
        });
        let rest = "using-graph-uri=http://a/&using-named-graph-uri=http://b/&timeout=3&durability=relaxed";
        let form = post(FORM, "", format!("update=CLEAR+ALL&{rest}").as_bytes());
        assert_eq!(form.unwrap(), expected);
        let direct = post("application/sparql-update", rest, b"CLEAR ALL");
        assert_eq!(direct.unwrap(), expected);
        for (parameters, body) in [
            ("", "update=CLEAR+ALL&update=CLEAR+ALL"),
            ("durability=never", "update=CLEAR+ALL"),
            ("at=3", "update=CLEAR+ALL"),
        ] {
            let refused = post(FORM, parameters, body.as_bytes());
            assert_eq!(status_of(refused), StatusCode::BAD_REQUEST);
        }
    }

    #[test]
    fn other_content_types_and_charsets_are_unsupported() {
        assert_eq!(
            status_of(post("text/plain", "", b"ASK{}")),
            StatusCode::UNSUPPORTED_MEDIA_TYPE
        );
        assert_eq!(
            status_of(post(
                "application/sparql-query; charset=latin1",
                "",
                b"ASK{}"
            )),
            StatusCode::UNSUPPORTED_MEDIA_TYPE
        );
        let none = parse(&Method::POST, None, &HeaderMap::new(), b"ASK{}");
        assert_eq!(status_of(none), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }

    #[test]
    fn text_must_be_utf8() {
        assert_eq!(
            status_of(post(DIRECT, "", b"ASK { ?s ?p '\xff' }")),
            StatusCode::BAD_REQUEST
        );
        assert_eq!(status_of(get("query=ASK+%FF")), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_bare_get_asks_for_the_service_description() {
        let bare = parse(&Method::GET, None, &HeaderMap::new(), b"").unwrap();
        assert_eq!(bare, Operation::Describe { format: None });
        let format = Some("turtle".to_owned());
        assert_eq!(
            get("format=turtle").unwrap(),
            Operation::Describe { format }
        );
    }

    #[test]
    fn timeouts_are_seconds_or_have_a_unit() {
        let timeout = |text: &str| query_of(get(&format!("query=ASK{{}}&timeout={text}"))).timeout;
        assert_eq!(timeout("30"), Some(Duration::from_secs(30)));
        assert_eq!(timeout("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(timeout("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(timeout("2min"), Some(Duration::from_secs(120)));
        for bad in ["", "0", "-1", "soon", "1h", "1e400", "NaN", "inf", "."] {
            assert!(
                get(&format!("query=ASK{{}}&timeout={bad}")).is_err(),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_survives_form_encoding(text in ".*") {
            let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
            prop_assert_eq!(decode_form(encoded.as_bytes(), "text").unwrap(), text);
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes: Vec<u8>) {
            let _ = post(FORM, "", &bytes);
            let _ = post(DIRECT, "", &bytes);
        }
    }
}
