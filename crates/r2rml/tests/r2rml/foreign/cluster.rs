//! A temporary PostgreSQL server on a free loopback port, for tests.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The user of tests, and one who needs a password.
pub(crate) const USER: &str = "tester";
pub(crate) const LOCKED: &str = "locked";
pub(crate) const PASSWORD: &str = "pa55word'x";

pub(crate) struct Cluster {
    _directory: tempfile::TempDir,
    server: Mutex<Option<Child>>,
    pub(crate) port: u16,
    log: Arc<Mutex<Vec<String>>>,
    databases: AtomicUsize,
    /// Statements that mark places in the log.
    marks: AtomicUsize,
}

/// A database of its own in a cluster.
pub(crate) struct Source {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) database: String,
}

static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());

/// A database in the cluster that running tests share; none, with a word, where there is no
/// PostgreSQL.
pub(crate) fn source() -> Option<Source> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let cluster = match shared.upgrade() {
        Some(cluster) => cluster,
        None => {
            let cluster = Arc::new(Cluster::start(&[])?);
            *shared = Arc::downgrade(&cluster);
            cluster
        }
    };
    drop(shared);
    Some(Source::in_cluster(cluster))
}

/// The directory of the server's programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let programs = versions.flatten().map(|version| version.path().join("bin"));
    let mut found: Vec<PathBuf> = programs.filter(|it| it.join("initdb").exists()).collect();
    found.sort();
    if found.is_empty() {
        println!(
            "skipped: no server of PostgreSQL in /usr/lib/postgresql (scripts/setup.sh installs it)"
        );
    }
    found.pop()
}

/// Who runs the server, if we are root, which it refuses to run as.
fn other_user() -> Option<(u32, u32)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    if uid.is_none_or(|uid| uid.split_whitespace().next() != Some("0")) {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let user = users
        .lines()
        .find(|line| line.starts_with("postgres:"))
        .unwrap();
    let mut ids = user.split(':').skip(2).map(|id| id.parse::<u32>().unwrap());
    Some((ids.next().unwrap(), ids.next().unwrap()))
}

impl Cluster {
    /// One with further settings.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Option<Self> {
        let programs = programs()?;
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let user = other_user();
        let own = |path: &Path| {
            if let Some((uid, gid)) = user {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        };
        own(directory.path());
        let command = |name: &str| {
            let mut command = Command::new(programs.join(name));
            if let Some((uid, gid)) = user {
                command.gid(gid).uid(uid);
            }
            command.current_dir(directory.path()).env_remove("PGDATA");
            command
        };
        let made = command("initdb")
            .args([
                "--no-sync",
                "--auth=trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "-U",
                USER,
                "-D",
            ])
            .arg(&data)
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let rules = format!(
            "host all {LOCKED} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        );
        std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
        for (_, path) in settings.iter().filter(|(name, _)| name.ends_with("_file")) {
            let own_path = data.join(Path::new(path).file_name().unwrap());
            std::fs::copy(path, &own_path).unwrap();
            std::fs::set_permissions(&own_path, std::fs::Permissions::from_mode(0o600)).unwrap();
            own(&own_path);
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut starting = command("postgres");
        starting
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string()]);
        let fixed = [
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("fsync", "off"),
            ("log_statement", "all"),
            ("lc_messages", "C"),
            ("log_line_prefix", ""),
            ("max_connections", "60"),
        ];
        for (name, value) in fixed.iter().chain(settings) {
            let value = match name.ends_with("_file") {
                true => Path::new(value).file_name().unwrap().to_str().unwrap(),
                false => value,
            };
            starting.args(["-c", &format!("{name}={value}")]);
        }
        let mut server = starting
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(Vec::new()));
        loop {
            let Some(line) = lines.next().transpose().unwrap() else {
                panic!("the server ends: {:?}", log.lock().unwrap());
            };
            let is_ready = line.contains("ready to accept connections");
            log.lock().unwrap().push(line);
            if is_ready {
                break;
            }
        }
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        let cluster = Self {
            _directory: directory,
            server: Mutex::new(Some(server)),
            port,
            log,
            databases: AtomicUsize::new(0),
            marks: AtomicUsize::new(0),
        };
        let password = PASSWORD.replace('\'', "''");
        cluster.psql(
            "postgres",
            &format!("CREATE ROLE {LOCKED} LOGIN PASSWORD '{password}'"),
        );
        Some(cluster)
    }

    /// Runs statements there; what they print.
    pub(crate) fn psql(&self, database: &str, text: &str) -> String {
        let done = Command::new("psql")
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
                "127.0.0.1",
                "-U",
                USER,
            ])
            .args(["-p", &self.port.to_string(), "-d", database, "-c", text])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{text}: {errors}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Lines of the server's log with a text, up to now.
    pub(crate) fn logged(&self, part: &str) -> Vec<String> {
        // An answer may be here before the line about it was read: what is logged later tells that
        // it was.
        let mark = format!("up to {}", self.marks.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("SELECT '{mark};'"));
        let end = Instant::now() + Duration::from_secs(30);
        let has_mark = || {
            let log = self.log.lock().unwrap();
            log.iter().any(|line| line.contains(&format!("{mark};")))
        };
        while !has_mark() {
            assert!(Instant::now() < end, "the server logs nothing");
            std::thread::sleep(Duration::from_millis(2));
        }
        let log = self.log.lock().unwrap();
        log.iter()
            .filter(|line| line.contains(part))
            .cloned()
            .collect()
    }

    /// Ends the server at once, as a power cut does.
    pub(crate) fn kill(&self) {
        let Some(mut server) = self.server.lock().unwrap().take() else {
            return;
        };
        // SIGQUIT: its processes go without a word to each other, and take nothing along.
        let id = server.id().to_string();
        _ = Command::new("kill").args(["-QUIT", &id]).status();
        _ = server.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Source {
    pub(crate) fn in_cluster(cluster: Arc<Cluster>) -> Self {
        let number = cluster.databases.fetch_add(1, Ordering::Relaxed);
        let database = format!("source{number}");
        cluster.psql("postgres", &format!("CREATE DATABASE {database}"));
        Self { cluster, database }
    }

    /// Runs statements in it.
    pub(crate) fn psql(&self, text: &str) -> String {
        self.cluster.psql(&self.database, text)
    }

    /// Its address for a user.
    pub(crate) fn address_of(&self, user: &str) -> String {
        let port = self.cluster.port;
        format!("postgres://{user}@127.0.0.1:{port}/{}", self.database)
    }

    /// `CREATE EXTERNAL TABLE name`, with columns in brackets or none, of the table of that name.
    pub(crate) fn create(&self, name: &str, columns: &str) -> String {
        let address = self.address_of(USER);
        format!("create external table {name} {columns} stored as postgres location '{address}'")
    }
}
