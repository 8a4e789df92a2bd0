//! Object stores for tests, and commands that reach them: an S3 server on the loopback, or a
//! directory that processes share.
//!
//! `ORRERY_S3=http://127.0.0.1:9000/bucket` uses that server and bucket, with the environment's
//! AWS_ variables, instead of moto's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::common::{check_failure, good, orrery};
use crate::serve::Server;

const BUCKET: &str = "tests";

/// A server of S3.
pub(crate) struct S3 {
    /// `http://HOST:PORT`
    pub(crate) endpoint: String,
    bucket: String,
    /// Ends with its standard input, and so with the tests.
    _process: Option<Child>,
}

impl S3 {
    /// The server of all tests; none where there is no moto.
    pub(crate) fn get() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<S3>> = OnceLock::new();
        let server = SERVER.get_or_init(|| match std::env::var("ORRERY_S3") {
            Ok(address) => Some(Self::of_environment(&address)),
            Err(_) => Self::start(),
        });
        if server.is_none() {
            eprintln!("skipped: no moto in ~/.cache/orrery/clients (make setup), and no ORRERY_S3");
        }
        server.as_ref()
    }

    fn of_environment(address: &str) -> Self {
        let (endpoint, bucket) = address
            .rsplit_once('/')
            .expect("ORRERY_S3 is http://HOST:PORT/BUCKET");
        Self {
            endpoint: endpoint.to_owned(),
            bucket: bucket.to_owned(),
            _process: None,
        }
    }

    fn start() -> Option<Self> {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        let python = home.join(".cache/orrery/clients/bin/python");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/s3_server.py");
        let mut process = Command::new(python)
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut port = String::new();
        BufReader::new(process.stdout.take()?)
            .read_line(&mut port)
            .ok()?;
        let port: u16 = port.trim().parse().ok()?;
        let server = Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            bucket: BUCKET.to_owned(),
            _process: Some(process),
        };
        server.make_bucket(port);
        Some(server)
    }

    fn make_bucket(&self, port: u16) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // Nobody looks at the signature.
        let request = format!(
            "PUT /{} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.bucket
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// A location for databases in an object store, with a cache of its own; it is deleted with the
/// tests.
pub(crate) struct Place {
    /// Of databases: `s3://bucket/prefix`, or `file:///directory`.
    prefix: String,
    endpoint: Option<String>,
    home: TempDir,
}

impl Place {
    /// In a server of S3.
    pub(crate) fn in_s3(server: &S3) -> Self {
        static PLACES: AtomicUsize = AtomicUsize::new(0);
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        Self {
            prefix: format!("s3://{}/{process}-{number}", server.bucket),
            endpoint: Some(server.endpoint.clone()),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// In a directory that processes share.
    pub(crate) fn in_directory() -> Self {
        let home = tempfile::tempdir().unwrap();
        let shared = home.path().join("shared");
        std::fs::create_dir(&shared).unwrap();
        Self {
            prefix: format!("file://{}", shared.display()),
            endpoint: None,
            home,
        }
    }

    /// The same place by way of something between, with a cache of its own.
    pub(crate) fn through(&self, endpoint: &str) -> Self {
        Self {
            prefix: self.prefix.clone(),
            endpoint: Some(endpoint.to_owned()),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The same place from another machine, which has nothing of it yet.
    pub(crate) fn seen_elsewhere(&self) -> Self {
        Self {
            prefix: self.prefix.clone(),
            endpoint: self.endpoint.clone(),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The address of a database.
    pub(crate) fn database(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    /// A local path for whatever a test needs.
    pub(crate) fn local(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The binary, told how to reach the store.
    pub(crate) fn orrery(&self) -> Command {
        let mut command = orrery();
        command.env("ORRERY_CACHE", self.home.path().join("cache"));
        if let Some(endpoint) = &self.endpoint {
            command
                .env("AWS_ENDPOINT", endpoint)
                .env("AWS_ALLOW_HTTP", "true");
            for (name, value) in [
                ("AWS_ACCESS_KEY_ID", "test"),
                ("AWS_SECRET_ACCESS_KEY", "test"),
                ("AWS_REGION", "us-east-1"),
            ] {
                if std::env::var_os(name).is_none() {
                    command.env(name, value);
                }
            }
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.orrery().args(arguments).output().unwrap()
    }

    /// Runs to the end, which must be a good one; standard output.
    #[track_caller]
    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        good(self.run(arguments), arguments)
    }

    /// Runs to the end, which must be exit status 1 with one line that has each of `parts`.
    #[track_caller]
    pub(crate) fn fail(&self, arguments: &[&str], parts: &[&str]) {
        check_failure(&self.run(arguments), parts);
    }

    /// Serves a database.
    pub(crate) fn serve(&self, database: &str, options: &[&str]) -> Server {
        Server::start_by(self.orrery(), database, options)
    }
}
