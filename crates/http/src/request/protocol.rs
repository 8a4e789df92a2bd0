//! The SPARQL 1.1 Protocol, 2.1 and 2.2: parses an HTTP request into an operation.
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
//! This module only works on bytes in memory and executes nothing. It refuses parameters of the
//! other operation by their names, and whatever looks like a parameter of a dataset or gives a
//! variable its value: running a query on another dataset than its sender means is worse than
//! refusing it. All other unknown parameters are ignored with a warning, see `passed_over`.

use crate::request::body::BodyMemory;
use crate::request::media_type::MediaType;
use crate::request::min_commit::{MIN_COMMIT_PARAMETER, check_in_address};
use crate::request::parameters::{checked_iri, decode_name, decode_value, flag, pairs};
use crate::request::passed_over::PassedOver;
use axum::http::{HeaderMap, Method, header};
use orrery_service::errors::ServiceError;
use orrery_units::parse_time;
use std::time::Duration;

/// A query, with its parameters.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct QueryRequest {
    pub(crate) query: String,
    /// `default-graph-uri`, which wins over FROM in the query.
    pub(crate) default_graphs: Vec<String>,
    /// `named-graph-uri`, which wins over FROM NAMED.
    pub(crate) named_graphs: Vec<String>,
    /// `timeout`: how long the client is willing to wait.
    pub(crate) timeout: Option<Duration>,
    /// `format`, `output` or `results`: a format by name rather than by `Accept`.
    pub(crate) format: Option<String>,
    /// `at`: the commit, or the time, of the snapshot to read.
    pub(crate) at: Option<String>,
    /// `partial=true`: if a limit ends the query, the rows found so far are the answer.
    pub(crate) partial: bool,
    /// Ignored parameters, for warnings.
    pub(crate) passed_over: PassedOver,
    /// Memory that is reserved for the request's body.
    pub(crate) memory: Held,
}

/// An update, with its parameters.
#[derive(Debug, PartialEq, Eq, Default)]
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
    /// Ignored parameters, for warnings.
    pub(crate) passed_over: PassedOver,
    /// `forget-history=true`: a change larger than memory may give up old snapshots that are
    /// retained.
    pub(crate) forgets_history: bool,
    /// Memory that is reserved for the request's body.
    pub(crate) memory: Held,
}

/// Memory that is reserved while a request runs. It is no part of the request's meaning.
#[derive(Debug, Default)]
pub(crate) struct Held {
    _memory: Option<BodyMemory>,
}

impl Held {
    pub(crate) fn of(memory: BodyMemory) -> Self {
        Self {
            _memory: Some(memory),
        }
    }
}

impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Held {}

/// The operation that a request to the endpoint asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Run a query.
    Query(QueryRequest),
    /// Make a change.
    Update(UpdateRequest),
    /// Describe the endpoint: GET without parameters.
    Describe {
        /// `format` or `output`.
        format: Option<String>,
    },
}

impl Operation {
    /// Holds memory for as long as the operation runs.
    pub(crate) fn holding(mut self, memory: BodyMemory) -> Self {
        match &mut self {
            Self::Query(query) => query.memory = Held::of(memory),
            Self::Update(update) => update.memory = Held::of(memory),
            Self::Describe { .. } => {}
        }
        self
    }
}

/// Parses a request to `/sparql` or `/explain`.
pub(crate) fn parse(
    method: &Method,
    url_query: Option<&str>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Operation, ServiceError> {
    let mut parameters = Parameters::default();
    parameters.add(url_query.unwrap_or("").as_bytes())?;
    if method == Method::POST {
        parameters.add_body(headers, body)?;
    } else if parameters.update_count > 0 {
        return Err(ServiceError::bad_request(
            "an update must be sent by POST, not by GET",
        ));
    }
    parameters.into_operation(method)
}

/// The parameters read so far, from the URL and the body.
#[derive(Default)]
struct Parameters {
    request: QueryRequest,
    update: UpdateRequest,
    query_count: usize,
    update_count: usize,
    has_any: bool,
    /// Whether they come from the body.
    is_body: bool,
    /// The first parameter that only a query has, and the first that only an update has.
    of_query: Option<&'static str>,
    of_update: Option<&'static str>,
}

impl Parameters {
    /// Adds the `name=value&...` of a URL or a form.
    fn add(&mut self, encoded: &[u8]) -> Result<(), ServiceError> {
        for (name, value) in pairs(encoded) {
            let name = decode_name(name)?;
            self.set(&name, value)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), ServiceError> {
        let had_any = std::mem::replace(&mut self.has_any, true);
        let text = || decode_value(name, value);
        match name {
            "query" => {
                self.query_count += 1;
                self.request.query = text()?;
            }
            "update" => {
                self.update_count += 1;
                self.update.update = text()?;
            }
            "using-graph-uri" => {
                self.of_update.get_or_insert("using-graph-uri");
                push_graph(&mut self.update.using_graphs, name, text()?)?;
            }
            "using-named-graph-uri" => {
                self.of_update.get_or_insert("using-named-graph-uri");
                push_graph(&mut self.update.using_named_graphs, name, text()?)?;
            }
            "durability" => {
                self.of_update.get_or_insert("durability");
                self.update.is_relaxed = parse_durability(&text()?)?;
            }
            "forget-history" => {
                self.of_update.get_or_insert("forget-history");
                self.update.forgets_history = flag("forget-history", &text()?)?;
            }
            "at" => {
                self.of_query.get_or_insert("at");
                self.request.at = Some(text()?);
            }
            "partial" => {
                self.of_query.get_or_insert("partial");
                self.request.partial = parse_partial(&text()?)?;
            }
            "default-graph-uri" => {
                self.of_query.get_or_insert("default-graph-uri");
                push_graph(&mut self.request.default_graphs, name, text()?)?;
            }
            "named-graph-uri" => {
                self.of_query.get_or_insert("named-graph-uri");
                push_graph(&mut self.request.named_graphs, name, text()?)?;
            }
            "timeout" => self.request.timeout = Some(parse_timeout(&text()?)?),
            // If it is in the address, the request has waited for that commit before it came here.
            MIN_COMMIT_PARAMETER => check_in_address(self.is_body)?,
            // Some clients send it with updates, too, whose answer has one format.
            "format" | "output" | "results" => self.request.format = Some(text()?),
            _ => {
                self.has_any = had_any;
                self.request.passed_over.add(name, &text()?, KNOWN)?;
            }
        }
        Ok(())
    }

    fn add_body(&mut self, headers: &HeaderMap, body: &[u8]) -> Result<(), ServiceError> {
        self.is_body = true;
        match type_of_body(headers, POST_TYPES)?.essence() {
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
            other => Err(ServiceError::unsupported_media_type(format!(
                "neither a query nor an update can be sent as `{other}`; {POST_TYPES}"
            ))),
        }
    }

    fn into_operation(self, method: &Method) -> Result<Operation, ServiceError> {
        if self.query_count > 0 && self.update_count > 0 {
            return Err(ServiceError::bad_request(
                "the request has both a query and an update; send one of them",
            ));
        }
        if self.update_count > 0 {
            return self.into_update();
        }
        if let Some(name) = self.of_update.filter(|_| self.query_count > 0) {
            return Err(misplaced(
                name,
                "updates",
                "default-graph-uri or named-graph-uri",
            ));
        }
        match self.query_count {
            1 => Ok(Operation::Query(self.request)),
            0 if method != Method::POST && self.is_bare() => Ok(Operation::Describe {
                format: self.request.format,
            }),
            0 => Err(ServiceError::bad_request(
                "the request has no query; send it as parameter `query`, or by POST as \
                 application/sparql-query",
            )),
            count => Err(ServiceError::bad_request(format!(
                "the request has {count} queries; send one at a time"
            ))),
        }
    }

    fn into_update(self) -> Result<Operation, ServiceError> {
        if self.update_count > 1 {
            return Err(ServiceError::bad_request(format!(
                "the request has {} updates; send one, which may have several operations",
                self.update_count
            )));
        }
        if let Some(name) = self.of_query {
            return Err(match name {
                "partial" => ServiceError::bad_request(
                    "`partial` is for queries; an update is done as a whole",
                ),
                "at" => {
                    ServiceError::bad_request("`at` is for queries; the past cannot be changed")
                }
                _ => misplaced(name, "queries", "using-graph-uri or using-named-graph-uri"),
            });
        }
        Ok(Operation::Update(UpdateRequest {
            timeout: self.request.timeout,
            passed_over: self.request.passed_over,
            ..self.update
        }))
    }

    /// True if the only parameter is a format.
    fn is_bare(&self) -> bool {
        let request = &self.request;
        !self.has_any
            || (request.format.is_some()
                && request.default_graphs.is_empty()
                && request.named_graphs.is_empty()
                && request.timeout.is_none()
                && request.at.is_none()
                && !request.partial)
    }
}

const KNOWN: &str = "query, default-graph-uri, named-graph-uri, at, format, partial, timeout, min-commit for queries; update, using-graph-uri, \
                     using-named-graph-uri, durability, forget-history, timeout, min-commit for updates";

fn misplaced(name: &str, whose: &str, instead: &str) -> ServiceError {
    let rest = match name {
        "durability" | "forget-history" => String::new(),
        _ => format!("; here it is {instead}"),
    };
    ServiceError::bad_request(format!("parameter `{name}` is for {whose}{rest}"))
}

const POST_TYPES: &str = "use application/sparql-query, application/sparql-update, or \
                          application/x-www-form-urlencoded with a parameter `query` or `update`";

pub(crate) fn text_of_body(what: &str, body: &[u8]) -> Result<String, ServiceError> {
    std::str::from_utf8(body)
        .map(str::to_owned)
        .map_err(|error| {
            ServiceError::bad_request(format!(
                "the {what} is not UTF-8: invalid byte at offset {}",
                error.valid_up_to()
            ))
        })
}

/// Parses `relaxed` or `durable`; true for `relaxed`.
pub(crate) fn parse_durability(text: &str) -> Result<bool, ServiceError> {
    match text {
        "relaxed" => Ok(true),
        "durable" => Ok(false),
        other => Err(ServiceError::bad_request(format!(
            "durability `{other}` is unknown; it can be `durable` or `relaxed`"
        ))),
    }
}

/// Parses `true` or `false`.
pub(crate) fn parse_partial(text: &str) -> Result<bool, ServiceError> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(ServiceError::bad_request(format!(
            "partial `{other}` is unknown; it can be `true` or `false`"
        ))),
    }
}

/// Most graphs of a request, more than anyone names by hand; each becomes part of the plan.
const GRAPHS_MAX: usize = 1000;

fn push_graph(graphs: &mut Vec<String>, name: &str, graph: String) -> Result<(), ServiceError> {
    if graphs.len() >= GRAPHS_MAX {
        return Err(ServiceError::bad_request(format!(
            "more than {GRAPHS_MAX} graphs in one request"
        )));
    }
    graphs.push(checked_iri(name, graph)?);
    Ok(())
}

/// The media type of a body, whose charset must be one that we read.
pub(crate) fn type_of_body<'h>(
    headers: &'h HeaderMap,
    known: &str,
) -> Result<MediaType<'h>, ServiceError> {
    let unsupported = ServiceError::unsupported_media_type;
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Err(unsupported(format!(
            "the request has no Content-Type; {known}"
        )));
    };
    let text = value
        .to_str()
        .map_err(|_| unsupported("the Content-Type is not ASCII text".to_owned()))?;
    let media_type = MediaType::parse(text);
    let charset = media_type.parameter("charset").map(str::to_ascii_lowercase);
    match charset.as_deref() {
        // ASCII is a subset of UTF-8.
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(media_type),
        Some(other) => Err(unsupported(format!(
            "charset `{other}` is not supported; send UTF-8"
        ))),
    }
}

/// `timeout`, as in [`parse_time`].
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, ServiceError> {
    parse_time(text).map_err(|error| {
        ServiceError::bad_request(format!("parameter `timeout` is `{text}`: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::error_response::ErrorResponse as _;
    use axum::http::{HeaderValue, StatusCode};
    use proptest::prelude::*;

    fn get(url_query: &str) -> Result<Operation, ServiceError> {
        parse(&Method::GET, Some(url_query), &HeaderMap::new(), b"")
    }

    fn post(
        content_type: &'static str,
        url_query: &str,
        body: &[u8],
    ) -> Result<Operation, ServiceError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        parse(&Method::POST, Some(url_query), &headers, body)
    }

    fn query_of(result: Result<Operation, ServiceError>) -> QueryRequest {
        match result.unwrap() {
            Operation::Query(request) => request,
            other => panic!("{other:?}"),
        }
    }

    fn status_of(result: Result<Operation, ServiceError>) -> StatusCode {
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
            passed_over: PassedOver::default(),
            forgets_history: true,
            memory: Held::default(),
        });
        let rest = "using-graph-uri=http://a/&using-named-graph-uri=http://b/&timeout=3&durability=relaxed&forget-history=true";
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
    fn parameters_of_the_other_operation_and_unknown_ones_are_named() {
        let message = |result: Result<Operation, ServiceError>| result.unwrap_err().to_string();
        for name in ["using-graph-uri", "using-named-graph-uri"] {
            let refused = message(get(&format!("query=ASK{{}}&{name}=http://e/")));
            assert!(
                refused.contains(&format!("`{name}` is for updates")),
                "{refused}"
            );
        }
        let durable = message(get("query=ASK{}&durability=durable"));
        assert!(durable.contains("`durability` is for updates"), "{durable}");
        for name in ["default-graph-uri", "named-graph-uri"] {
            let refused = message(post(
                FORM,
                "",
                format!("{name}=http://e/&update=CLEAR+ALL").as_bytes(),
            ));
            assert!(
                refused.contains(&format!("`{name}` is for queries")),
                "{refused}"
            );
        }
        for request in [
            "query=ASK{}&deafult-graph-uri=http://e/",
            "deafult-graph-uri=x",
        ] {
            let refused = message(get(request));
            assert!(
                refused.contains("is unknown here; known are query, "),
                "{refused}"
            );
        }
        for name in ["$x", "default-graph", "named-graf-uri"] {
            let refused = message(get(&format!("query=ASK{{}}&{name}=http://e/")));
            assert!(refused.contains("is unknown here"), "{refused}");
        }
        for (name, operation) in [
            ("default-graph-uri", "query=ASK{}"),
            ("named-graph-uri", "query=ASK{}"),
            ("using-graph-uri", "update=CLEAR+ALL"),
            ("using-named-graph-uri", "update=CLEAR+ALL"),
        ] {
            let request = format!("{operation}&{name}=relative");
            let refused = message(post(FORM, "", request.as_bytes()));
            assert!(
                refused.starts_with(&format!(
                    "parameter `{name}`: `relative` is no absolute IRI"
                )),
                "{refused}"
            );
        }
        // The parameters by which clients name a format.
        for name in ["format", "output", "results"] {
            let request = query_of(get(&format!("query=ASK{{}}&{name}=xml")));
            assert_eq!(request.format.as_deref(), Some("xml"));
            post(FORM, "", format!("update=CLEAR+ALL&{name}=xml").as_bytes()).unwrap();
        }
        let broken = message(get("query=ASK%7B%7D%2&x=1"));
        assert!(
            broken.starts_with("parameter `query` has broken percent-encoding at byte 9"),
            "{broken}"
        );
        let late = message(get("query=ASK{}&timeout=soon"));
        assert!(
            late.starts_with("parameter `timeout` is `soon`: expected a time"),
            "{late}"
        );
    }

    #[test]
    fn parameters_of_other_servers_are_passed_over_with_a_word() {
        let warnings = |address: &str| {
            let warnings = query_of(get(address)).passed_over.warnings();
            let text = warnings.iter().map(|it| it.to_str().unwrap().to_owned());
            text.collect::<Vec<_>>()
        };
        let silent = "query=ASK{}&debug=on&infer=false&should-sponge=&signal_void=on&format=json";
        assert_eq!(warnings(silent), [""; 0]);
        let told = warnings("query=ASK{}&limti=10&infer=true");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("parameter `limti` is unknown here and was passed over"));
        assert!(told[1].contains("nothing is inferred"), "{told:?}");
        assert_eq!(warnings("query=ASK{}&a=1&b=1&c=1&d=1&e=1&f=1").len(), 4);
        assert_eq!(
            get("debug=on").unwrap(),
            Operation::Describe { format: None }
        );
        let Ok(Operation::Update(update)) = post(FORM, "", b"update=CLEAR+ALL&x=1") else {
            panic!("an update");
        };
        assert_eq!(update.passed_over.warnings().len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes: Vec<u8>) {
            let _ = post(FORM, "", &bytes);
            let _ = post(DIRECT, "", &bytes);
        }
    }
}
