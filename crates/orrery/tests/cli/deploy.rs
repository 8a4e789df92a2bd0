//! Tests of the files in `deploy/` with the binary: the command lines of the compose files and of
//! the Kubernetes manifests, and the scripts of the image. `make check-deploy` checks them against
//! schemas.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{orrery, run, succeed, text};
use crate::serve::Server;

/// What clap ends with where it does not know an option, or what stands behind it.
const STATUS_OF_CLAP: i32 = 2;
/// A password and a token of /metrics.
const SECRET: &str = "0123456789abcdef01234567";
/// Where the nodes of a cluster find their secret.
const SECRETS_OF_NODES: [&str; 2] = ["/etc/orrery/cluster/secret", "/run/secrets/cluster"];

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(name: &str) -> String {
    let path = deploy().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lists in a file of YAML that begin with `serve`, which have an item a line.
fn command_lines(yaml: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = yaml.lines().collect();
    let begins = (0..lines.len()).filter(|&at| lines[at].trim() == "- serve");
    begins
        .map(|at| {
            let indentation = lines[at].len() - "- serve".len();
            let items = lines[at..].iter().map_while(|line| {
                let (blanks, item) = line.split_at_checked(indentation)?;
                let item = item.strip_prefix("- ")?;
                blanks.trim().is_empty().then(|| item.trim().to_owned())
            });
            items.collect()
        })
        .collect()
}

/// The settings of a ConfigMap of Kubernetes.
fn configuration(file: &str) -> BTreeMap<String, String> {
    let text = read(file);
    let data = text.split_once("\ndata:\n").unwrap().1;
    let settings = data.lines().filter(|line| !line.trim().starts_with('#'));
    let settings = settings.filter_map(|line| line.trim().split_once(": "));
    settings
        .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}

/// An argument with its variables replaced: `$(NAME)` of Kubernetes, or `${NAME:-otherwise}` of
/// compose, which always is the whole argument.
fn filled(argument: &str, settings: &BTreeMap<String, String>) -> String {
    let argument = argument.trim_matches('"');
    if let Some(variable) = argument.strip_prefix("${") {
        let variable = variable.strip_suffix('}').unwrap();
        return variable.split_once(":-").unwrap().1.to_owned();
    }
    let Some((before, rest)) = argument.split_once("$(") else {
        return argument.to_owned();
    };
    let (name, after) = rest.split_once(')').unwrap();
    let value = settings.get(name);
    let value = value.unwrap_or_else(|| panic!("{name} is not configured"));
    format!("{before}{value}{}", filled(after, settings))
}

/// The argument for this machine: a database that does not exist, and files of the test in place of
/// those of a container.
fn moved(argument: String, directory: &Path) -> String {
    if argument.starts_with("s3://") {
        return format!("file://{}/nothing", directory.display());
    }
    let Some(path) = argument.strip_prefix('/') else {
        return argument;
    };
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // A node that has its secret would begin to listen.
    if argument.starts_with("/etc/") && !SECRETS_OF_NODES.contains(&argument.as_str()) {
        fs::write(&path, SECRET).unwrap();
    }
    text(&path).to_owned()
}

/// Runs a command line up to its failure for lack of a database, or of a secret for a cluster node:
/// by then all options have been read.
#[track_caller]
fn check_options(
    mut program: Command,
    command_line: &[String],
    settings: &BTreeMap<String, String>,
    lacks: &str,
) {
    let directory = tempfile::tempdir().unwrap();
    let arguments = command_line.iter();
    let arguments: Vec<String> = arguments
        .map(|argument| moved(filled(argument, settings), directory.path()))
        .collect();
    let output = program.args(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(STATUS_OF_CLAP), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(lacks),
        "{arguments:?} end for another reason: {said}"
    );
}

/// Whether a command line is of a server that only reads.
fn is_reader(command_line: &[String]) -> bool {
    command_line
        .iter()
        .any(|argument| argument == "--read-only")
}

#[test]
fn all_servers_of_the_compose_file_are_started_with_options_that_there_are() {
    let servers = command_lines(&read("compose/compose.yaml"));
    assert_eq!(servers.len(), 2, "the writer, and both readers by one list");
    assert_eq!(servers.iter().filter(|it| is_reader(it)).count(), 1);
    for server in &servers {
        check_options(orrery(), server, &BTreeMap::new(), "/nothing");
    }
}

#[test]
fn all_nodes_of_the_compose_file_are_started_with_options_that_there_are() {
    let nodes = command_lines(&read("compose/cluster.yaml"));
    assert_eq!(nodes.len(), 3);
    for node in &nodes {
        check_options(orrery(), node, &BTreeMap::new(), SECRETS_OF_NODES[1]);
    }
}

#[test]
fn all_servers_of_kubernetes_are_started_with_options_that_there_are() {
    for (file, only_reads) in [
        ("kubernetes/writer.yaml", false),
        ("kubernetes/readers.yaml", true),
    ] {
        let servers = command_lines(&read(file));
        assert_eq!(servers.len(), 1, "{file}");
        assert_eq!(is_reader(&servers[0]), only_reads, "{file}");
        let settings = configuration("kubernetes/configuration.yaml");
        check_options(orrery(), &servers[0], &settings, "/nothing");
    }
}

#[test]
fn all_nodes_of_kubernetes_are_started_with_options_that_there_are() {
    let nodes = command_lines(&read("kubernetes/cluster/nodes.yaml"));
    assert_eq!(nodes.len(), 1);
    let mut settings = configuration("kubernetes/cluster/configuration.yaml");
    for pod in 0..3 {
        let pod = format!("orrery-cluster-{pod}");
        settings.insert("ORRERY_POD".to_owned(), pod);
        let mut program = script("sh", "orrery-node");
        program.envs(&settings);
        check_options(program, &nodes[0], &settings, SECRETS_OF_NODES[0]);
    }
}

#[test]
fn an_option_that_there_is_not_is_found_in_a_file() {
    let yaml = "x:\n  args:\n    - serve\n    - --db\n    - s3://a/b\n    - --no-such\n  more:\n    - --other\n";
    let servers = command_lines(yaml);
    assert_eq!(servers, [["serve", "--db", "s3://a/b", "--no-such"]]);
    let arguments: Vec<&str> = servers[0].iter().map(String::as_str).collect();
    assert_eq!(run(&arguments).status.code(), Some(STATUS_OF_CLAP));
}

/// A script of the image, for which this binary is `orrery`.
fn script(shell: &str, name: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_orrery"));
    let mut folders = vec![program.parent().unwrap().to_path_buf()];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut command = Command::new(shell);
    command
        .arg(deploy().join("image").join(name))
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("ORRERY_LOG", "warn");
    command
}

/// What the node of a pod says that it was started with, which ends before it listens.
#[track_caller]
fn number_of(pod: &str, numbers: Option<&str>) -> String {
    let mut node = script("sh", "orrery-node");
    // Refused for its number before anything else is looked at.
    node.args(["serve", "--cluster", "--cluster-secret-file", "/nowhere"])
        .args(["--db", "/nowhere", "--peers", "77=127.0.0.1:1"])
        .env("ORRERY_POD", pod);
    if let Some(numbers) = numbers {
        node.env("ORRERY_NODES", numbers);
    }
    let output = node.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_number_of_a_node_is_that_of_its_pod_or_another_if_its_volume_was_lost() {
    for (pod, numbers, says) in [
        ("orrery-cluster-0", None, "node 1 is not in --peers"),
        ("orrery-cluster-2", None, "node 3 is not in --peers"),
        ("a-b-1", Some("1 4 3"), "node 4 is not in --peers"),
        ("a-b-10", None, "node 11 is not in --peers"),
        ("a-b-3", Some("1 4 3"), "no number for a-b-3"),
        ("orrery", None, "does not end in a number"),
    ] {
        let said = number_of(pod, numbers);
        assert!(said.contains(says), "{pod}: {said}");
    }
}

/// Runs the writer of an image, which then lists the users instead of serving.
fn writer(database: &str, password: &str) -> Output {
    script("sh", "orrery-writer")
        .args(["user", "list", "--db", database])
        .env("ORRERY_DB", database)
        .env("ORRERY_ADMIN_PASSWORD", password)
        .env("ORRERY_WRITER_PAUSE", "0")
        .output()
        .unwrap()
}

#[test]
fn the_writer_of_an_image_makes_the_database_and_its_administrator_once() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("db");
    let log = || succeed(&["log", "--db", text(&database)]);
    let check = |output: Output| {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let users = String::from_utf8(output.stdout).unwrap();
        let listed: Vec<&str> = users
            .lines()
            .filter(|line| line.starts_with("admin "))
            .collect();
        assert_eq!(listed.len(), 1, "{users}");
        assert!(listed[0].contains("administrator"), "{users}");
    };
    check(writer(text(&database), SECRET));
    let first = log();
    check(writer(text(&database), "another password"));
    assert_eq!(log(), first, "a new start commits nothing");
}

#[test]
fn the_writer_of_an_image_ends_where_another_one_goes_on_writing() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("db");
    succeed(&["update", "--db", text(&database), "INSERT DATA {}"]);
    let _server = Server::start(text(&database));
    let output = writer(text(&database), SECRET);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no turn to write"), "{said}");
}

/// Whether the check of an image finds a server well at a port of this machine.
fn is_healthy(address: SocketAddr) -> bool {
    let mut check = script("bash", "orrery-health");
    check.env("ORRERY_HEALTH_PORT", address.port().to_string());
    check.output().unwrap().status.success()
}

#[test]
fn the_health_check_of_an_image_tells_a_server_from_none_and_from_one_that_is_not_well() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("db");
    succeed(&["update", "--db", text(&database), "INSERT DATA {}"]);
    let server = Server::start(text(&database));
    let address = server.address.parse().unwrap();
    assert!(is_healthy(address));
    drop(server);
    assert!(!is_healthy(address));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let unwell = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert_ne!(stream.read(&mut [0; 1024]).unwrap(), 0);
        let answer = b"HTTP/1.0 503 Service Unavailable\r\n\r\n";
        stream.write_all(answer).unwrap();
    });
    assert!(!is_healthy(address));
    unwell.join().unwrap();
}
