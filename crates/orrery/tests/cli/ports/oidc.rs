//! A test of `orrery serve --oidc-issuer` with a real OpenID provider (npm: oidc-provider) on
//! loopback. Without the provider on the machine it is skipped with a message; `make setup`
//! installs it.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use crate::access::database;
use crate::common::{check_failure, orrery, succeed, text};
use crate::ports::postgres::{client, has};
use crate::serve::{Server, wait_until};

/// Ends with the test, however that ends.
struct Provider {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    issuer: String,
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Provider {
    fn start(modules: &str, port: &str) -> Self {
        let mut process = Command::new("node")
            .args([&client("oidc_provider.mjs"), modules, port])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        let issuer = String::new();
        let mut provider = Self {
            process,
            input,
            output,
            issuer,
        };
        provider.issuer = provider.line("issuer ");
        provider
    }

    /// The rest of the next line that begins so.
    fn line(&mut self, beginning: &str) -> String {
        let mut lines = self.output.by_ref().map(Result::unwrap);
        let line = lines.find_map(|line| line.strip_prefix(beginning).map(str::to_owned));
        line.expect("the provider goes on")
    }

    fn token(&mut self, client: &str, algorithm: &str, audience: &str) -> String {
        writeln!(self.input, "{client} {algorithm} {audience}").unwrap();
        let token = self.line("token ");
        assert_eq!(token.split('.').count(), 3, "{token}");
        token
    }
}

/// Where the provider is installed.
fn modules() -> Option<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let own = std::env::var("ORRERY_OIDC_PROVIDER").ok();
    let place = own.unwrap_or_else(|| format!("{home}/.cache/orrery/clients/oidc"));
    let is_there = PathBuf::from(&place)
        .join("node_modules/oidc-provider")
        .exists();
    if !is_there {
        eprintln!("skipped: {place} has no oidc-provider; see `make setup`");
    }
    (is_there && has("node", &["--version"])).then_some(place)
}

#[test]
fn tokens_of_a_real_provider_are_taken_through_its_changes_of_keys() {
    let Some(modules) = modules() else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let database = database(home.path());
    let mut provider = Provider::start(&modules, "0");
    let issuer = provider.issuer.clone();
    let file = home.path().join("password");
    std::fs::write(&file, "another horse\n").unwrap();
    for arguments in [
        ["user", "set", "ann", "--identity", &format!("{issuer}#ann")].as_slice(),
        &["user", "add", "bob", "--password-file", text(&file)],
    ] {
        succeed(&[arguments, &["--db", &database]].concat());
    }
    let options = ["--oidc-issuer", &issuer, "--oidc-audience", "orrery"];
    let server = Server::start_with(&database, &options);
    let change = |token: &str| -> Output {
        let server = format!("http://{}", server.address);
        let update = "INSERT DATA { GRAPH <x:own/1> { <x:b> <x:p> 3 } }";
        let mut command = orrery();
        command.args(["update", "--server", &server, update]);
        command.env("ORRERY_KEY", token).output().unwrap()
    };
    for algorithm in ["RS256", "ES256", "EdDSA"] {
        let token = provider.token("ann", algorithm, "orrery");
        let output = change(&token);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{algorithm}: {error}");
    }
    // A token for another audience, two of identities that no user has, and one that was changed on
    // the way.
    let other = provider.token("ann", "RS256", "other");
    let root = provider.token("root", "RS256", "orrery");
    let bob = provider.token("bob", "ES256", "orrery");
    let old = provider.token("ann", "ES256", "orrery");
    let (signed, signature) = old.rsplit_once('.').unwrap();
    let (rest, of_bob) = (signed.split('.').next().unwrap(), bob.split('.').nth(1));
    let changed = format!("{rest}.{}.{signature}", of_bob.unwrap());
    for wrong in [&other, &root, &bob, &changed] {
        check_failure(&change(wrong), &["401"]);
    }

    // The provider is away: its keys go on. When it comes back it has others, which are found.
    let port = issuer.rsplit(':').next().unwrap().to_owned();
    drop(provider);
    assert!(change(&old).status.success());
    let mut provider = Provider::start(&modules, &port);
    let new = provider.token("ann", "RS256", "orrery");
    wait_until("the new keys are known", || change(&new).status.success());
    check_failure(&change(&old), &["401"]);
}
