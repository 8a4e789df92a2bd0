//! The runner of the `orrery` binary: commands, and servers under measurement.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::BenchError;
use crate::http_client::HttpClient;

const SERVER_START_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The `orrery` program to measure.
#[derive(Clone, Debug)]
pub struct Binary {
    program: PathBuf,
}

/// What a finished command left.
pub(super) struct Finished {
    pub(super) command: String,
    pub(super) output: String,
    pub(super) elapsed: Duration,
    /// The most memory the process had at a time, where the system tells.
    pub(super) peak_memory_bytes: Option<u64>,
}

impl Binary {
    /// The program at this path.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// The program `orrery` in the directory of the running program, where a build puts both.
    ///
    /// # Errors
    /// When the system does not report the running program's path.
    pub fn beside() -> Result<Self, BenchError> {
        let here = std::env::current_exe().map_err(|source| BenchError::Start {
            program: PathBuf::from("orrery"),
            source,
        })?;
        let name = format!("orrery{}", std::env::consts::EXE_SUFFIX);
        Ok(Self::new(here.with_file_name(name)))
    }

    /// Runs a command to its end. Its standard output must fit into memory, its
    /// standard error into a pipe or be read: it is collected, too.
    pub(super) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Finished, BenchError> {
        let command = self.command_line(arguments);
        let start = Instant::now();
        let mut child = self.spawn(arguments, Stdio::piped())?;
        let errors = child.stderr.take().map(collect);
        let outputs = child.stdout.take().map(collect);
        let mut peak_memory_bytes = None;
        let (status, elapsed) = loop {
            // The high-water mark only rises, so the last look is the best one.
            peak_memory_bytes = peak_memory(child.id()).or(peak_memory_bytes);
            match child.try_wait() {
                Ok(Some(status)) => break (status, start.elapsed()),
                Ok(None) => thread::sleep(POLL_INTERVAL),
                Err(source) => return Err(self.cannot_start(source)),
            }
        };
        let output = outputs.map(joined).unwrap_or_default();
        let errors = errors.map(joined).unwrap_or_default();
        ensure_success(&command, status, &errors)?;
        Ok(Finished {
            command,
            output,
            elapsed,
            peak_memory_bytes,
        })
    }

    /// Runs a short command and returns how long it took, output thrown away.
    pub(super) fn time<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Duration, BenchError> {
        let start = Instant::now();
        let output = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| self.cannot_start(source))?;
        let elapsed = start.elapsed();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure_success(&self.command_line(arguments), output.status, &errors)?;
        Ok(elapsed)
    }

    /// Serves a database on a free port of the loopback interface.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn serve(&self, database: &Path) -> Result<ServerProcess, BenchError> {
        self.serve_with(database, &[])
    }

    /// Serves a database that nothing changes, so that others may serve or write it, too.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn serve_read_only(&self, database: &Path) -> Result<ServerProcess, BenchError> {
        self.serve_with(database, &["--read-only"])
    }

    /// Serves with further arguments.
    pub(super) fn serve_with(
        &self,
        database: &Path,
        more: &[&str],
    ) -> Result<ServerProcess, BenchError> {
        let listen = free_address().map_err(|source| self.cannot_start(source))?;
        let mut arguments: Vec<&OsStr> = vec![
            "serve".as_ref(),
            "--db".as_ref(),
            database.as_ref(),
            "--listen".as_ref(),
            listen.as_ref(),
        ];
        arguments.extend(more.iter().map(OsStr::new));
        let mut server = ServerProcess {
            child: self.spawn(&arguments, Stdio::null())?,
            endpoint: format!("http://{listen}/sparql"),
        };
        let errors = server.child.stderr.take().map(collect);
        let command = self.command_line(&arguments);
        let mut client = HttpClient::new(&server.endpoint)?;
        let start = Instant::now();
        loop {
            let Err(source) = client.get("/health", &mut Vec::new()) else {
                return Ok(server);
            };
            if let Ok(Some(status)) = server.child.try_wait() {
                let errors = errors.map(joined).unwrap_or_default();
                return Err(failed(&command, status, &errors));
            }
            if start.elapsed() > SERVER_START_MAX {
                return Err(BenchError::NotServing {
                    command,
                    seconds: SERVER_START_MAX.as_secs(),
                    source,
                });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn spawn<A: AsRef<OsStr>>(&self, arguments: &[A], stdout: Stdio) -> Result<Child, BenchError> {
        Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| self.cannot_start(source))
    }

    fn cannot_start(&self, source: io::Error) -> BenchError {
        BenchError::Start {
            program: self.program.clone(),
            source,
        }
    }

    fn command_line<A: AsRef<OsStr>>(&self, arguments: &[A]) -> String {
        let mut line = self.program.display().to_string();
        for argument in arguments {
            line.push(' ');
            line.push_str(&argument.as_ref().to_string_lossy());
        }
        line
    }
}

/// A running server; it ends with this value.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    endpoint: String,
}

impl ServerProcess {
    /// The address of its SPARQL endpoint.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Ends it at once, by SIGKILL, as it will end with this value.
    pub(super) fn kill(&mut self) {
        // If it has ended already there is nothing to end.
        let _ = self.child.kill();
    }

    /// Its number for the system.
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It only reads; if it has ended already there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that was free a moment ago; the server takes it at once.
fn free_address() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.to_string())
}

fn ensure_success(command: &str, status: ExitStatus, errors: &str) -> Result<(), BenchError> {
    if status.success() {
        return Ok(());
    }
    Err(failed(command, status, errors))
}

fn failed(command: &str, status: ExitStatus, errors: &str) -> BenchError {
    let last_line = errors.lines().rev().find(|line| !line.trim().is_empty());
    BenchError::Failed {
        command: command.to_owned(),
        status: status.to_string(),
        message: last_line.unwrap_or("it said nothing").trim().to_owned(),
    }
}

/// Reads a pipe to its end beside the process, lest it wait for a reader.
fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read is shown; a broken pipe ends the text.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn joined(reader: thread::JoinHandle<String>) -> String {
    reader.join().unwrap_or_default()
}

/// The processor time that all threads of a process have had, on Linux.
pub fn processor_time(process: u32) -> Option<Duration> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let nanos = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(nanos.sum()))
}

/// The same with threads that have ended, to a hundredth of a second.
pub fn whole_processor_time(process: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may have blanks and parentheses: utime and stime, the 14th and the
    // 15th field of proc(5), in ticks of which Linux says 100 are a second.
    let (_, fields) = text.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks = ticks.map(|field| field.parse::<u64>().ok());
    let ticks = ticks.sum::<Option<u64>>()?;
    Some(Duration::from_millis(ticks * 10))
}

/// `VmHWM` of a process, on Linux.
fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_says_its_last_line() {
        let error = Binary::new("/bin/sh")
            .run(&["-c", "echo first >&2; echo why >&2; exit 3"])
            .map(|_| ())
            .unwrap_err();
        assert!(
            matches!(&error, BenchError::Failed { message, .. } if message == "why"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Binary::new("/no/such/orrery").time(&["query"]).unwrap_err();
        assert!(error.to_string().contains("/no/such/orrery"), "{error}");
    }

    #[test]
    fn processor_time_only_grows() {
        let before = processor_time(std::process::id()).unwrap();
        assert!(before > Duration::ZERO);
        assert!(processor_time(std::process::id()).unwrap() >= before);
        assert!(processor_time(u32::MAX).is_none());
    }

    #[test]
    fn threads_that_have_ended_count_as_well() {
        let before = whole_processor_time(std::process::id()).unwrap();
        let worked = thread::spawn(|| {
            let until = std::time::Instant::now() + Duration::from_millis(200);
            while std::time::Instant::now() < until {
                std::hint::spin_loop();
            }
        });
        worked.join().unwrap();
        let after = whole_processor_time(std::process::id()).unwrap();
        assert!(after > before, "{after:?}");
        assert!(whole_processor_time(u32::MAX).is_none());
    }

    #[test]
    fn output_is_collected() {
        let finished = Binary::new("/bin/sh").run(&["-c", "echo out"]).unwrap();
        assert_eq!(finished.output, "out\n");
    }
}
