//! Protocol tests: a manifest's requests to a real server.
//!
//! Each test has a server of its own, over the data that the test names. The paths of the manifests
//! (`/sparql/`, `/gsp`) stand for ours, as they ask for.

use std::path::Path;

use orrery_server::{Server, ServerOptions};
use oxrdf::{NamedNodeRef, NamedOrBlankNode, Quad, Term};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::expected::{Answer, compare_quads, parse_answer, parse_quads};
use super::update::load_graphs;
use super::{Exchange, Files, HttpTest, ServiceDescriptionTest};

/// The name that stands for the address of a graph that the server made.
const LOCATION: &str = "$LOCATION$";

const SD: &str = "http://www.w3.org/ns/sparql-service-description#";

/// Starts a server, does the work with its address, and stops it.
fn with_server(
    directory: &Path,
    runtime: &Runtime,
    work: impl AsyncFnOnce(&str) -> Result<(), String>,
) -> Result<(), String> {
    runtime.block_on(async {
        let mut options = ServerOptions::new(directory);
        options.listen.set_port(0);
        let server = Server::bind(options).await.map_err(|e| e.to_string())?;
        let address = server.local_addr().map_err(|e| e.to_string())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async {
            // A dropped sender stops it too.
            let _ = stopped.await;
        }));
        let result = work(&address.to_string()).await;
        drop(stop);
        let ended = running.await.map_err(|e| e.to_string())?;
        ended.map_err(|e| e.to_string())?;
        result
    })
}

/// Every answer is as the manifest says.
pub(crate) fn converse(
    files: &Files,
    directory: &Path,
    runtime: &Runtime,
    test: &HttpTest,
) -> Result<(), String> {
    load_graphs(files, directory, &test.data)?;
    with_server(directory, runtime, async |host| {
        let mut location = String::new();
        for (number, exchange) in test.exchanges.iter().enumerate() {
            let wrong = |message: String| {
                let (method, path) = (&exchange.method, &exchange.path);
                format!("request {}, {method} {path}: {message}", number + 1)
            };
            let response = send(host, exchange, &location).await.map_err(wrong)?;
            if exchange.has_location {
                let found = response.header("location");
                location = found
                    .ok_or_else(|| wrong("no Location".to_owned()))?
                    .to_owned();
            }
            check(exchange, &response).map_err(wrong)?;
        }
        Ok(())
    })
}

struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

async fn send(host: &str, exchange: &Exchange, location: &str) -> Result<Response, String> {
    let path = match exchange.path.strip_prefix("/sparql/") {
        Some(rest) => format!("/sparql{rest}"),
        None => exchange.path.replacen("/gsp", "/graphs", 1),
    };
    let path = path.replace(LOCATION, location);
    let mut head = format!(
        "{} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n",
        exchange.method
    );
    for (name, value) in &exchange.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut body = exchange.body.clone().unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(&body) {
        body = text.replace(LOCATION, location).into_bytes();
    }
    if exchange.body.is_some() || exchange.method == "POST" {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    head += "\r\n";
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(host).await.map_err(failed)?;
    stream.write_all(head.as_bytes()).await.map_err(failed)?;
    stream.write_all(&body).await.map_err(failed)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.map_err(failed)?;
    parse(&bytes).ok_or_else(|| format!("no HTTP: {}", String::from_utf8_lossy(&bytes)))
}

fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines.filter_map(|line| line.split_once(": "));
    let mut response = Response {
        status,
        headers: headers.map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
        body: bytes[end + 4..].to_vec(),
    };
    if response.header("transfer-encoding") == Some("chunked") {
        response.body = unchunked(&response.body)?;
    }
    Some(response)
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 4 + size..)?;
    }
}

fn check(exchange: &Exchange, response: &Response) -> Result<(), String> {
    let fits = exchange.statuses.iter().any(|name| match name.as_str() {
        "StatusCode2xx" => (200..300).contains(&response.status),
        "StatusCode3xx" => (300..400).contains(&response.status),
        "StatusCode4xx" => (400..500).contains(&response.status),
        "StatusCode5xx" => (500..600).contains(&response.status),
        "OK" => response.status == 200,
        "Created" => response.status == 201,
        "NoContent" => response.status == 204,
        "NotFound" => response.status == 404,
        _ => false,
    });
    if !fits {
        let text = String::from_utf8_lossy(&response.body);
        return Err(format!(
            "expected status {:?}, found {}: {}",
            exchange.statuses,
            response.status,
            text.trim()
        ));
    }
    for (name, expected) in &exchange.expected_headers {
        let found = response.header(name).unwrap_or_default();
        if !found.eq_ignore_ascii_case(expected) {
            return Err(format!("expected {name}: {expected}, found {found}"));
        }
    }
    let content_type = response.header("content-type").unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default();
    if let Some(format) = &exchange.expected_format {
        check_format(format, media_type)?;
    }
    if let Some(expected) = exchange.expected_boolean {
        match parse_answer(answer_file(media_type), &response.body)? {
            Answer::Boolean(found) if found == expected => {}
            other => return Err(format!("expected {expected}, found {other:?}")),
        }
    }
    if let Some(expected) = &exchange.expected_body {
        let name = "http://www.example/answer.ttl";
        let expected = parse_quads(name, expected.as_bytes())?;
        compare_quads(&expected, &parse_quads(name, &response.body)?)?;
    }
    Ok(())
}

fn answer_file(media_type: &str) -> &'static str {
    match media_type {
        "application/sparql-results+xml" => "http://www.example/answer.srx",
        _ => "http://www.example/answer.srj",
    }
}

/// The kinds of answers that the manifest knows, by their media types.
fn check_format(format: &str, media_type: &str) -> Result<(), String> {
    let known: &[&str] = match format {
        "boolean" => &[
            "application/sparql-results+xml",
            "application/sparql-results+json",
        ],
        "tabular" => &[
            "application/sparql-results+xml",
            "application/sparql-results+json",
            "text/tab-separated-values",
            "text/csv",
        ],
        "RDF" => &[
            "application/rdf+xml",
            "application/n-triples",
            "text/turtle",
        ],
        other => return Err(format!("`{other}` is no known kind of answer")),
    };
    if known.contains(&media_type) {
        return Ok(());
    }
    Err(format!("expected one of {known:?}, found {media_type}"))
}

/// The service description is as the test asks. The manifest only names the three tests; what they
/// ask is in <https://www.w3.org/TR/sparql11-service-description/>, sections 2 (RDF by GET), 3.4.1
/// (`sd:endpoint`) and 3 (the vocabulary).
pub(crate) fn describe(
    directory: &Path,
    runtime: &Runtime,
    test: ServiceDescriptionTest,
) -> Result<(), String> {
    load_graphs_of_nothing(directory)?;
    with_server(directory, runtime, async |host| {
        let exchange = Exchange {
            method: "GET".to_owned(),
            path: "/sparql/".to_owned(),
            headers: vec![("Accept".to_owned(), "text/turtle".to_owned())],
            statuses: vec!["OK".to_owned()],
            expected_format: Some("RDF".to_owned()),
            ..Exchange::default()
        };
        let response = send(host, &exchange, "").await?;
        check(&exchange, &response)?;
        let endpoint = format!("http://{host}/sparql");
        let quads = parse_quads("http://www.example/answer.ttl", &response.body)?;
        match test {
            ServiceDescriptionTest::ReturnsRdf if quads.is_empty() => {
                Err("the description is empty".to_owned())
            }
            ServiceDescriptionTest::ReturnsRdf => Ok(()),
            ServiceDescriptionTest::HasEndpoint => {
                let has_endpoint = quads.iter().any(|quad| {
                    quad.predicate == sd("endpoint").as_ref()
                        && matches!(&quad.object, Term::NamedNode(node) if node.as_str() == endpoint)
                });
                let missing = || format!("no sd:endpoint <{endpoint}>");
                has_endpoint.then_some(()).ok_or_else(missing)
            }
            ServiceDescriptionTest::ConformsToSchema => conforms(&quads),
        }
    })
}

fn load_graphs_of_nothing(directory: &Path) -> Result<(), String> {
    orrery_storage::Database::create_or_open(directory)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn sd(name: &str) -> oxrdf::NamedNode {
    oxrdf::NamedNode::new_unchecked(format!("{SD}{name}"))
}

/// Properties of the vocabulary and the class of their subjects.
const PROPERTIES: &[(&str, &str)] = &[
    ("endpoint", "Service"),
    ("feature", "Service"),
    ("defaultEntailmentRegime", "Service"),
    ("defaultSupportedEntailmentProfile", "Service"),
    ("extensionFunction", "Service"),
    ("extensionAggregate", "Service"),
    ("languageExtension", "Service"),
    ("supportedLanguage", "Service"),
    ("propertyFeature", "Service"),
    ("defaultDataset", "Service"),
    ("availableGraphs", "Service"),
    ("resultFormat", "Service"),
    ("inputFormat", "Service"),
    ("entailmentRegime", "NamedGraph"),
    ("supportedEntailmentProfile", "NamedGraph"),
    ("name", "NamedGraph"),
    ("graph", "NamedGraph"),
    ("defaultGraph", "Dataset"),
    ("namedGraph", "Dataset"),
];

/// Classes and individuals of the vocabulary.
const NAMES: &[&str] = &[
    "Service",
    "Feature",
    "Language",
    "Function",
    "Aggregate",
    "EntailmentRegime",
    "EntailmentProfile",
    "GraphCollection",
    "Dataset",
    "Graph",
    "NamedGraph",
    "SPARQL10Query",
    "SPARQL11Query",
    "SPARQL11Update",
    "DereferencesURIs",
    "UnionDefaultGraph",
    "RequiresDataset",
    "EmptyGraphs",
    "BasicFederatedQuery",
];

/// Whether the vocabulary is used as it is defined: known names only, and each property on a
/// resource of its class.
fn conforms(quads: &[Quad]) -> Result<(), String> {
    let has_type = |subject: &NamedOrBlankNode, class: &str| {
        quads.iter().any(|quad| {
            quad.subject == *subject
                && quad.predicate == oxrdf::vocab::rdf::TYPE
                && quad.object == Term::from(sd(class))
        })
    };
    for quad in quads {
        if let Some(name) = quad.predicate.as_str().strip_prefix(SD) {
            let class = PROPERTIES.iter().find(|(property, _)| *property == name);
            let (_, class) = class.ok_or_else(|| format!("there is no sd:{name}"))?;
            // A graph collection is a set of named graphs, and a dataset is one, too.
            let fits = has_type(&quad.subject, class)
                || (name == "namedGraph" && has_type(&quad.subject, "GraphCollection"));
            if !fits {
                return Err(format!("sd:{name} of what is no sd:{class}: {quad}"));
            }
        }
        if let Term::NamedNode(node) = &quad.object
            && let Some(name) = node.as_str().strip_prefix(SD)
            && !NAMES.contains(&name)
        {
            return Err(format!("there is no sd:{name}"));
        }
    }
    let service =
        NamedNodeRef::new_unchecked("http://www.w3.org/ns/sparql-service-description#Service");
    let services = quads
        .iter()
        .filter(|quad| quad.object == Term::from(service.into_owned()))
        .count();
    match services {
        1 => Ok(()),
        count => Err(format!("{count} services are described, expected one")),
    }
}
