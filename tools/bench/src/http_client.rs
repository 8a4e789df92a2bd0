//! A minimal HTTP/1.1 client for measurements: one kept-alive connection, one request at a time.
//!
//! It exists so that what is measured is the server: a request is one write, the answer is read
//! whole into a buffer that the caller reuses, and the time from the first byte sent to the last
//! one read is what the drivers take. It knows `Content-Length`, chunks and end of connection; no
//! TLS, no redirects, no compression. (A client such as reqwest, which the server has for
//! `SERVICE`, brings a pool, a runtime and buffers of its own into each measurement.)

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;
use url::Url;

/// A server that says nothing for so long is given up, if not said otherwise.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// More header lines than this are no HTTP server.
const HEADER_LINES_MAX: usize = 200;
/// How much of an error's body is shown.
const ERROR_TEXT_BYTES_MAX: usize = 400;

/// Why a request failed.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address is not `http://host:port/path`.
    #[error("{endpoint}: not an http address")]
    Address {
        /// What was given.
        endpoint: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("{endpoint}: {source}")]
    Connection {
        /// The server.
        endpoint: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The server said nothing for the time that the client waits. It may still be at work.
    #[error("{endpoint}: no answer within {seconds} s")]
    TimedOut {
        /// The server.
        endpoint: String,
        /// How long was waited.
        seconds: f64,
    },
    /// The answer is not HTTP.
    #[error("{endpoint}: the answer is not HTTP: {line}")]
    NotHttp {
        /// The server.
        endpoint: String,
        /// The line in question.
        line: String,
    },
    /// The server refused the request.
    #[error("{endpoint}: status {status}: {text}")]
    Status {
        /// The server.
        endpoint: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of the answer.
        text: String,
    },
}

/// A connection to one SPARQL endpoint.
#[derive(Debug)]
pub struct HttpClient {
    endpoint: String,
    /// `host:port`.
    authority: String,
    path: String,
    connection: Option<BufReader<TcpStream>>,
    line: String,
    encoding: QueryEncoding,
    silence_max: Duration,
    /// A line of each head that says who asks; empty if nobody is said to.
    authorization: String,
    /// `Server-Timing` of the last answer; empty if it had none.
    server_timing: String,
    /// The headers of the last answer, of those who want them.
    headers: Option<Vec<(String, String)>>,
}

/// A request as its sender makes it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `GET`, `POST` and so on.
    pub method: &'static str,
    /// The path, with parameters.
    pub path: String,
    /// Headers beside those of the client.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

/// An answer of any status.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The headers, their names in small letters.
    pub headers: Vec<(String, String)>,
    /// What came of the body.
    pub body: Vec<u8>,
    /// Whether that is all of it: else the connection ended before.
    pub is_whole: bool,
}

impl Answer {
    /// A header's value, by its name in small letters; the first one.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(header, _)| header == name)?;
        Some(&found.1)
    }
}

/// A query that was sent and whose answer nobody reads; dropping it closes the connection, at which
/// a server ends the query.
#[derive(Debug)]
pub struct BegunQuery {
    connection: BufReader<TcpStream>,
}

impl BegunQuery {
    /// Whether the server still says nothing.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn is_running(&self) -> io::Result<bool> {
        let stream = self.connection.get_ref();
        stream.set_nonblocking(true)?;
        match stream.peek(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            answered => answered.map(|_| false),
        }
    }
}

/// How a query travels in a POST request; the SPARQL protocol has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryEncoding {
    /// As the body, `application/sparql-query`.
    #[default]
    Direct,
    /// As the field of a form, `application/x-www-form-urlencoded`: every store reads it.
    Form,
}

/// How the body of an answer ends.
enum BodyLength {
    Bytes(u64),
    Chunks,
    UntilClose,
}

struct Head {
    status: u16,
    length: BodyLength,
    keeps_alive: bool,
}

impl HttpClient {
    /// A client of this endpoint; connects at the first request.
    ///
    /// # Errors
    /// When the address is not an `http` one.
    pub fn new(endpoint: &str) -> Result<Self, HttpError> {
        let invalid = || HttpError::Address {
            endpoint: endpoint.to_owned(),
        };
        let url = Url::parse(endpoint).map_err(|_| invalid())?;
        let (Some(host), "http") = (url.host_str(), url.scheme()) else {
            return Err(invalid());
        };
        Ok(Self {
            endpoint: endpoint.to_owned(),
            authority: format!("{host}:{}", url.port_or_known_default().unwrap_or(80)),
            path: url[url::Position::BeforePath..url::Position::AfterQuery].to_owned(),
            connection: None,
            line: String::new(),
            encoding: QueryEncoding::Direct,
            silence_max: SILENCE_MAX,
            authorization: String::new(),
            server_timing: String::new(),
            headers: None,
        })
    }

    /// The same client, sending queries in this encoding.
    #[must_use]
    pub fn with_encoding(mut self, encoding: QueryEncoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// The same client, giving up a server that says nothing for so long, which must be more than
    /// zero. From a connection that is open already it goes on waiting as before.
    #[must_use]
    pub fn with_silence_max(mut self, silence_max: Duration) -> Self {
        self.silence_max = silence_max;
        self
    }

    /// The same client, asking as a user (Basic, RFC 7617).
    #[must_use]
    pub fn with_password(mut self, user: &str, password: &str) -> Self {
        let text = STANDARD.encode(format!("{user}:{password}"));
        self.authorization = format!("Authorization: Basic {text}\r\n");
        self
    }

    /// The same client, asking with a key or a token (Bearer, RFC 6750).
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.authorization = format!("Authorization: Bearer {key}\r\n");
        self
    }

    /// Where the server says that the time of the last request went: `name;dur=milliseconds, ...`.
    pub fn server_timing(&self) -> &str {
        &self.server_timing
    }

    /// Sends a query by POST and reads the whole answer into `body`.
    ///
    /// # Errors
    /// When the server cannot be reached or does not answer with status 200.
    pub fn query(
        &mut self,
        query: &str,
        accept: &str,
        body: &mut Vec<u8>,
    ) -> Result<(), HttpError> {
        let request = self.query_request(query, accept);
        self.exchange(request.as_bytes(), body)
    }

    /// Sends a query by POST and leaves the answer on the connection, which this client keeps open
    /// and uses for nothing else until it is dropped.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn begin_query(mut self, query: &str, accept: &str) -> Result<BegunQuery, HttpError> {
        let request = self.query_request(query, accept);
        let mut connection = self.open()?;
        connection
            .get_mut()
            .write_all(request.as_bytes())
            .map_err(|source| self.broken(source))?;
        Ok(BegunQuery { connection })
    }

    fn query_request(&self, query: &str, accept: &str) -> String {
        let form;
        let (media_type, content) = match self.encoding {
            QueryEncoding::Direct => ("application/sparql-query", query),
            QueryEncoding::Form => {
                form = url::form_urlencoded::Serializer::new(String::new())
                    .append_pair("query", query)
                    .finish();
                ("application/x-www-form-urlencoded", form.as_str())
            }
        };
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n{}Accept: {accept}\r\n\
             Content-Type: {media_type}\r\nContent-Length: {}\r\n\r\n{content}",
            self.path,
            self.authority,
            self.authorization,
            content.len()
        )
    }

    /// Sends an update by POST and reads the whole answer into `body`. Unlike a query it is never
    /// sent twice.
    ///
    /// # Errors
    /// When the server cannot be reached or does not answer with status 200.
    pub fn update(&mut self, update: &str, body: &mut Vec<u8>) -> Result<(), HttpError> {
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n{}Content-Type: application/sparql-update\r\n\
             Content-Length: {}\r\n\r\n{update}",
            self.path,
            self.authority,
            self.authorization,
            update.len()
        );
        self.try_exchange(request.as_bytes(), body)
    }

    /// Reads another path of the same server by GET.
    ///
    /// # Errors
    /// When the server cannot be reached or does not answer with status 200.
    pub fn get(&mut self, path: &str, body: &mut Vec<u8>) -> Result<(), HttpError> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{}\r\n",
            self.authority, self.authorization
        );
        self.exchange(request.as_bytes(), body)
    }

    /// Sends a request once and takes the answer as it comes, whatever its status.
    ///
    /// # Errors
    /// When the server cannot be reached, or the connection breaks before the head of the answer
    /// was read.
    pub fn send(&mut self, request: &Request) -> Result<Answer, HttpError> {
        let Request {
            method,
            path,
            headers,
            body,
        } = request;
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{}",
            self.authority, self.authorization
        );
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !matches!(*method, "GET" | "HEAD") {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body);
        let mut connection = self.open()?;
        let sent = connection.get_mut().write_all(text.as_bytes());
        sent.map_err(|source| self.broken(source))?;
        self.headers = Some(Vec::new());
        let head = self.read_head(&mut connection);
        let headers = self.headers.take().unwrap_or_default();
        let head = head?;
        let mut body = Vec::new();
        let read = read_body(&mut connection, &head.length, &mut body, &mut self.line);
        let is_whole = match read.map_err(|source| self.broken(source)) {
            Ok(()) => true,
            Err(HttpError::Connection { .. }) => false,
            Err(error) => return Err(error),
        };
        if is_whole && head.keeps_alive {
            self.connection = Some(connection);
        }
        Ok(Answer {
            status: head.status,
            headers,
            body,
            is_whole,
        })
    }

    fn exchange(&mut self, request: &[u8], body: &mut Vec<u8>) -> Result<(), HttpError> {
        let is_reused = self.connection.is_some();
        match self.try_exchange(request, body) {
            // A kept connection may have been closed since; queries can be repeated. One that took
            // too long is not: it would take as long again, beside itself.
            Err(HttpError::Connection { .. }) if is_reused => self.try_exchange(request, body),
            result => result,
        }
    }

    fn try_exchange(&mut self, request: &[u8], body: &mut Vec<u8>) -> Result<(), HttpError> {
        body.clear();
        self.server_timing.clear();
        let mut connection = self.open()?;
        connection
            .get_mut()
            .write_all(request)
            .map_err(|source| self.broken(source))?;
        let head = self.read_head(&mut connection)?;
        read_body(&mut connection, &head.length, body, &mut self.line)
            .map_err(|source| self.broken(source))?;
        if head.keeps_alive {
            self.connection = Some(connection);
        }
        if head.status == 200 {
            return Ok(());
        }
        let shown = &body[..body.len().min(ERROR_TEXT_BYTES_MAX)];
        Err(HttpError::Status {
            endpoint: self.endpoint.clone(),
            status: head.status,
            text: String::from_utf8_lossy(shown).trim().to_owned(),
        })
    }

    /// The kept connection or a new one.
    fn open(&mut self) -> Result<BufReader<TcpStream>, HttpError> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.connect().map_err(|source| self.unreachable(source)),
        }
    }

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&self.authority)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.silence_max))?;
        Ok(BufReader::with_capacity(1 << 16, stream))
    }

    fn read_head(&mut self, connection: &mut BufReader<TcpStream>) -> Result<Head, HttpError> {
        self.read_line(connection)?;
        let mut words = self.line.split(' ');
        let status = match (words.next(), words.next().map(str::parse)) {
            (Some(version), Some(Ok(status))) if version.starts_with("HTTP/1.") => status,
            _ => return Err(self.not_http()),
        };
        let mut head = Head {
            status,
            length: BodyLength::UntilClose,
            keeps_alive: true,
        };
        for _ in 0..HEADER_LINES_MAX {
            self.read_line(connection)?;
            if self.line.is_empty() {
                head.keeps_alive &= !matches!(head.length, BodyLength::UntilClose);
                return Ok(head);
            }
            let Some((name, value)) = self.line.split_once(':') else {
                return Err(self.not_http());
            };
            let value = value.trim();
            if let Some(headers) = &mut self.headers {
                headers.push((name.to_ascii_lowercase(), value.to_owned()));
            }
            if name.eq_ignore_ascii_case("content-length") {
                match value.parse() {
                    Ok(bytes) => head.length = BodyLength::Bytes(bytes),
                    Err(_) => return Err(self.not_http()),
                }
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.length = BodyLength::Chunks;
            } else if name.eq_ignore_ascii_case("connection") {
                head.keeps_alive = !value.eq_ignore_ascii_case("close");
            } else if name.eq_ignore_ascii_case("server-timing") {
                self.server_timing.push_str(value);
            }
        }
        Err(self.not_http())
    }

    fn read_line(&mut self, connection: &mut BufReader<TcpStream>) -> Result<(), HttpError> {
        read_line(connection, &mut self.line).map_err(|source| self.broken(source))
    }

    /// What an error of an open connection means.
    fn broken(&self, source: io::Error) -> HttpError {
        match source.kind() {
            // Systems differ in what they call a read that waited too long.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => HttpError::TimedOut {
                endpoint: self.endpoint.clone(),
                seconds: self.silence_max.as_secs_f64(),
            },
            _ => self.unreachable(source),
        }
    }

    fn unreachable(&self, source: io::Error) -> HttpError {
        HttpError::Connection {
            endpoint: self.endpoint.clone(),
            source,
        }
    }

    fn not_http(&self) -> HttpError {
        HttpError::NotHttp {
            endpoint: self.endpoint.clone(),
            line: self.line.clone(),
        }
    }
}

/// Reads a line without its end; the end of the input is an error.
fn read_line(connection: &mut impl BufRead, line: &mut String) -> io::Result<()> {
    line.clear();
    if connection.read_line(line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    Ok(())
}

fn read_body(
    connection: &mut impl BufRead,
    length: &BodyLength,
    body: &mut Vec<u8>,
    line: &mut String,
) -> io::Result<()> {
    match length {
        BodyLength::Bytes(bytes) => read_exactly(connection, *bytes, body),
        BodyLength::UntilClose => connection.read_to_end(body).map(|_| ()),
        BodyLength::Chunks => loop {
            read_line(connection, line)?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let bytes = u64::from_str_radix(digits, 16).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidData, "a chunk without length")
            })?;
            read_exactly(connection, bytes, body)?;
            read_line(connection, line)?;
            if bytes == 0 {
                return Ok(());
            }
        },
    }
}

fn read_exactly(connection: &mut impl BufRead, bytes: u64, body: &mut Vec<u8>) -> io::Result<()> {
    let read = connection.take(bytes).read_to_end(body)?;
    if read as u64 == bytes {
        return Ok(());
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Serves one prepared answer per request, on one connection.
    fn serve(answers: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            for answer in answers {
                let mut line = String::new();
                let mut length = 0;
                while reader.read_line(&mut line).unwrap() > 2 {
                    if let Some(value) = line.strip_prefix("Content-Length: ") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                reader.read_exact(&mut vec![0; length]).unwrap();
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        format!("http://{address}/sparql")
    }

    #[test]
    fn reads_lengths_and_chunks_on_one_connection() {
        let endpoint = serve(&[
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
        ]);
        let mut client = HttpClient::new(&endpoint).unwrap();
        let mut body = Vec::new();
        client.query("ASK {}", "*/*", &mut body).unwrap();
        assert_eq!(body, b"hello");
        client.get("/health", &mut body).unwrap();
        assert_eq!(body, b"abcde");
    }

    #[test]
    fn a_refusal_shows_the_servers_words() {
        let endpoint = serve(&["HTTP/1.1 400 Bad Request\r\ncontent-length: 9\r\n\r\nline 1: ?"]);
        let mut client = HttpClient::new(&endpoint).unwrap();
        let error = client.query("x", "*/*", &mut Vec::new()).unwrap_err();
        assert!(
            matches!(&error, HttpError::Status { status: 400, text, .. } if text == "line 1: ?")
        );
    }

    #[test]
    fn an_answer_cut_short_is_an_error() {
        let endpoint = serve(&["HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello"]);
        let mut client = HttpClient::new(&endpoint).unwrap();
        let error = client.query("x", "*/*", &mut Vec::new()).unwrap_err();
        assert!(matches!(error, HttpError::Connection { .. }), "{error}");
    }

    #[test]
    fn an_answer_of_any_status_is_taken_with_its_headers() {
        let endpoint = serve(&[
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\ncontent-length: 5\r\n\r\nlater",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ]);
        let mut client = HttpClient::new(&endpoint).unwrap();
        let request = Request {
            method: "GET",
            path: "/health".to_owned(),
            ..Request::default()
        };
        let answer = client.send(&request).unwrap();
        assert_eq!((answer.status, answer.is_whole), (503, true));
        assert_eq!(answer.header("retry-after"), Some("1"));
        let broken = client.send(&request).unwrap();
        assert_eq!(
            (broken.is_whole, broken.body.as_slice()),
            (false, &b"abc"[..])
        );
    }

    #[test]
    fn a_begun_query_runs_until_there_is_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/sparql", listener.local_addr().unwrap());
        let client = HttpClient::new(&endpoint).unwrap();
        let query = client.begin_query("ASK {}", "*/*").unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 1 << 12]).unwrap() > 0);
        assert!(query.is_running().unwrap());
        stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        while query.is_running().unwrap() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_silent_server_is_asked_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/sparql", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1 << 12];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .unwrap();
            // The second request is read and never answered; then the client closes.
            assert!(stream.read(&mut request).unwrap() > 0);
            assert_eq!(stream.read(&mut request).unwrap(), 0);
            // Nobody has connected again.
            listener.set_nonblocking(true).unwrap();
            listener.accept().map(drop).map_err(|error| error.kind())
        });
        let mut client = HttpClient::new(&endpoint)
            .unwrap()
            .with_silence_max(Duration::from_millis(50));
        let mut body = Vec::new();
        client.query("ASK {}", "*/*", &mut body).unwrap();
        let error = client.query("ASK {}", "*/*", &mut body).unwrap_err();
        assert!(matches!(error, HttpError::TimedOut { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            format!("{endpoint}: no answer within 0.05 s")
        );
        assert_eq!(server.join().unwrap(), Err(io::ErrorKind::WouldBlock));
    }

    #[test]
    fn only_http_addresses_are_taken() {
        assert!(HttpClient::new("https://example.org/sparql").is_err());
        assert!(HttpClient::new("nonsense").is_err());
    }
}
