//! Another store for comparison, set up, loaded and served by a script under `bench/peers`.
//!
//! The script's commands are `setup`, `load DIR FILE` (prints `seconds S` and `bytes B`) and
//! `serve DIR` (in the foreground); `PORT_HTTP` and `PORT_SQL` tell it where to listen.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use url::form_urlencoded;

use super::BenchError;
use super::binary::Binary;
use crate::http_client::{HttpClient, QueryEncoding};

const SERVER_START_MAX: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const PORT_HTTP: u16 = 28_890;
const PORT_SQL: u16 = 28_111;

/// A store that a script runs.
#[derive(Clone, Debug)]
pub struct Peer {
    name: String,
    script: PathBuf,
}

/// What the peer's own load took.
pub(super) struct PeerLoad {
    pub(super) seconds: f64,
    pub(super) bytes: u64,
}

/// A peer that is serving; it ends with this value.
#[derive(Debug)]
pub(super) struct PeerServer {
    child: Child,
    endpoint: String,
}

impl Peer {
    /// The graph that scripts load into; queries have it as their default graph.
    pub const GRAPH: &'static str = "http://example.org/bsbm";

    /// The peer whose script is `FOLDER/NAME.sh`.
    pub fn new(folder: &Path, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            script: folder.join(format!("{name}.sh")),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn setup(&self) -> Result<(), BenchError> {
        self.run(&["setup".as_ref()]).map(|_| ())
    }

    pub(super) fn load(&self, directory: &Path, file: &Path) -> Result<PeerLoad, BenchError> {
        let output = self.run(&["load".as_ref(), directory.as_ref(), file.as_ref()])?;
        let figure = |name: &str| -> Option<f64> {
            let line = output.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        match (figure("seconds "), figure("bytes ")) {
            (Some(seconds), Some(bytes)) => Ok(PeerLoad {
                seconds,
                bytes: bytes as u64,
            }),
            _ => Err(BenchError::Output {
                command: format!("{} load", self.script.display()),
                what: output,
            }),
        }
    }

    /// Starts it and waits until it answers.
    pub(super) fn serve(&self, directory: &Path) -> Result<PeerServer, BenchError> {
        let command = format!("{} serve", self.script.display());
        let child = Command::new(&self.script)
            .arg("serve")
            .arg(directory)
            .env("PORT_HTTP", PORT_HTTP.to_string())
            .env("PORT_SQL", PORT_SQL.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| BenchError::Start {
                program: self.script.clone(),
                source,
            })?;
        let server = PeerServer {
            child,
            endpoint: format!(
                "http://127.0.0.1:{PORT_HTTP}/sparql?default-graph-uri={}",
                form_urlencoded::byte_serialize(Peer::GRAPH.as_bytes()).collect::<String>()
            ),
        };
        let start = Instant::now();
        loop {
            let mut client = HttpClient::new(&server.endpoint)?.with_encoding(QueryEncoding::Form);
            match client.query("ASK {}", super::RESULTS_JSON, &mut Vec::new()) {
                Ok(()) => return Ok(server),
                Err(source) if start.elapsed() > SERVER_START_MAX => {
                    return Err(BenchError::NotServing {
                        command,
                        seconds: SERVER_START_MAX.as_secs(),
                        source,
                    });
                }
                Err(_) => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn run(&self, arguments: &[&OsStr]) -> Result<String, BenchError> {
        let script = Binary::new(&self.script);
        script.run(arguments).map(|finished| finished.output)
    }
}

impl PeerServer {
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        // The script replaced itself by the server. What it holds was checkpointed by the load.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
