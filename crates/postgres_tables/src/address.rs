//! The address of a foreign table, from `LOCATION` and `OPTIONS`.
//!
//! The address is `postgres://user@host:port/database?sslmode=...`; names and values in it may be
//! percent-encoded. A password in it is refused: the text is kept in the definition, where
//! everybody who may read the catalog sees it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};

/// PostgreSQL's own.
const PORT_DEFAULT: u16 = 5432;
/// How long connecting may take, unless an option says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that an option may say, in seconds.
const CONNECT_TIMEOUT_MAX_S: u64 = 300;
/// Variables of the environment that may be named begin so: others are none of a statement's
/// business.
const VARIABLE_PREFIX: &str = "PGPASSWORD";

/// How a connection is protected, as libpq has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SslMode {
    /// Not at all.
    Disable,
    /// Encrypted if the server can.
    Prefer,
    /// Encrypted, to whoever answers.
    Require,
    /// Encrypted, and somebody whom we trust vouches for the server.
    VerifyCa,
    /// The same, for just this host.
    VerifyFull,
}

/// Where the password comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum PasswordSource {
    /// The file of passwords that the process was told of.
    Default,
    /// A variable of the environment.
    Variable(String),
    /// A file of passwords in libpq's form.
    File(PathBuf),
}

/// A database of a server, and how it is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) ssl_mode: SslMode,
    /// A file of certificates in PEM; the public ones if none is given.
    pub(crate) ssl_root: Option<PathBuf>,
    pub(crate) password: PasswordSource,
    pub(crate) connect_timeout: Duration,
}

/// As messages have it.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "postgres://{}@{}/{}",
            self.user,
            host_and_port(&self.host, self.port),
            self.database
        )
    }
}

pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

impl Server {
    /// Of an address, and options by their names in small letters: `sslmode`, `sslrootcert`,
    /// `connect_timeout`, `password_env`, `passfile`.
    ///
    /// # Errors
    /// When the address or an option cannot be meant.
    pub fn parse(address: &str, options: &[(String, String)]) -> Result<Self> {
        // Never shown: who writes a password there is told so without it.
        let invalid = |words: &str| {
            Error::Invalid(format!(
                "the location of the external table {words}; write postgres://user@host:port/database"
            ))
        };
        let rest = ["postgres://", "postgresql://"]
            .iter()
            .find_map(|scheme| address.strip_prefix(scheme))
            .ok_or_else(|| invalid("does not begin with postgres://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = authority
            .rsplit_once('@')
            .ok_or_else(|| invalid("names no user"))?;
        if user.contains(':') {
            return Err(Error::Invalid(
                "a password in the location would be kept in the definition, where it can be read; put it into a file of passwords (passfile, or PGPASSFILE of \
                 this process), or into a variable that the option password_env names"
                    .to_owned(),
            ));
        }
        let (host, port) = host_of(place).ok_or_else(|| invalid("has no single host"))?;
        let decoded = |text: &str| {
            decode(text).ok_or_else(|| invalid("has a percent sign that encodes nothing"))
        };
        let user = decoded(user)?;
        if user.is_empty() {
            return Err(invalid("names no user"));
        }
        let database = match decoded(database)? {
            name if name.is_empty() => user.clone(),
            name => name,
        };
        if user.contains('\0') || database.contains('\0') {
            return Err(invalid("has a zero byte"));
        }
        let mut server = Self {
            host,
            port,
            user,
            database,
            ssl_mode: SslMode::Prefer,
            ssl_root: None,
            password: PasswordSource::Default,
            connect_timeout: CONNECT_TIMEOUT,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name.eq_ignore_ascii_case("password") {
                return Err(Error::Invalid(
                    "a password in the location would be kept in the definition, where it can be read".to_owned(),
                ));
            }
            server.set(&decoded(name)?, &decoded(value)?)?;
        }
        for (name, value) in options {
            server.set(name, value)?;
        }
        Ok(server)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let invalid =
            |may: &str| Error::Invalid(format!("the option {name} cannot be \"{value}\": {may}"));
        match name {
            "sslmode" => {
                self.ssl_mode = match value {
                    "disable" => SslMode::Disable,
                    "prefer" => SslMode::Prefer,
                    "require" => SslMode::Require,
                    "verify-ca" => SslMode::VerifyCa,
                    "verify-full" => SslMode::VerifyFull,
                    _ => {
                        return Err(invalid(
                            "it is disable, prefer, require, verify-ca or verify-full",
                        ));
                    }
                }
            }
            "sslrootcert" => {
                self.ssl_root = (value != "system").then(|| PathBuf::from(value));
            }
            "connect_timeout" => {
                let seconds = value.parse().ok();
                let seconds = seconds.filter(|it| (1..=CONNECT_TIMEOUT_MAX_S).contains(it));
                let seconds = seconds.ok_or_else(|| {
                    invalid(&format!(
                        "it is a number of seconds up to {CONNECT_TIMEOUT_MAX_S}"
                    ))
                })?;
                self.connect_timeout = Duration::from_secs(seconds);
            }
            "password_env" if value.starts_with(VARIABLE_PREFIX) => {
                self.password = PasswordSource::Variable(value.to_owned());
            }
            "password_env" => {
                return Err(invalid(&format!(
                    "the variable's name begins with {VARIABLE_PREFIX}"
                )));
            }
            "passfile" => self.password = PasswordSource::File(PathBuf::from(value)),
            "password" => {
                return Err(Error::Invalid(
                    "the option password would be kept in the definition, where it can be read; use passfile or password_env"
                        .to_owned(),
                ));
            }
            _ => {
                return Err(Error::Invalid(format!(
                    "there is no option {name} of tables stored as postgres"
                )));
            }
        }
        Ok(())
    }

    /// Whether it names files of this machine: those are for whoever may read files.
    pub fn names_files(&self) -> bool {
        self.ssl_root.is_some() || matches!(self.password, PasswordSource::File(_))
    }
}

/// One host, `name`, `1.2.3.4` or `[::1]`, and its port.
fn host_of(place: &str) -> Option<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            let port = match port {
                "" => None,
                port => Some(port.strip_prefix(':')?),
            };
            (host, port)
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let is_one = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    if host.is_empty() || !host.chars().all(is_one) {
        return None;
    }
    let port = port.map_or(Some(PORT_DEFAULT), |port| port.parse().ok());
    Some((host.to_ascii_lowercase(), port.filter(|port| *port > 0)?))
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = rest.get(2..)?;
    }
    String::from_utf8(bytes).ok()
}

/// The name of a table there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceName {
    pub(crate) schema: String,
    pub(crate) table: String,
}

impl SourceName {
    /// Of a text as SQL has names: `table`, `schema.table`, parts in double quotes as they are,
    /// others in small letters. Without a schema it is `public`.
    ///
    /// # Errors
    /// When it is no such name.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::Invalid(format!(
                "the option table cannot be \"{text}\": write table, schema.table or \"Schema\".\"Table\""
            ))
        };
        let mut parts = Vec::new();
        let mut rest = text.trim();
        loop {
            let part = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let (part, after) = unquoted(quoted).ok_or_else(wrong)?;
                    rest = after;
                    part
                }
                None => {
                    let end = rest.find('.').unwrap_or(rest.len());
                    let (part, after) = rest.split_at(end);
                    if part.contains(|c: char| c.is_whitespace() || "\"'();".contains(c)) {
                        return Err(wrong());
                    }
                    rest = after;
                    part.to_lowercase()
                }
            };
            if part.is_empty() || part.contains('\0') {
                return Err(wrong());
            }
            parts.push(part);
            match rest.strip_prefix('.') {
                Some(after) => rest = after,
                None if rest.is_empty() => break,
                None => return Err(wrong()),
            }
        }
        let mut parts = parts.into_iter();
        let name = match (parts.next(), parts.next(), parts.next()) {
            (Some(table), None, None) => Self {
                schema: "public".to_owned(),
                table,
            },
            (Some(schema), Some(table), None) => Self { schema, table },
            _ => return Err(wrong()),
        };
        Ok(name)
    }
}

/// As SQL has it, with all quotes.
impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = crate::literal::quoted_name;
        write!(f, "{}.{}", quoted(&self.schema), quoted(&self.table))
    }
}

/// What stands before the closing quote, and what behind it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(address: &str) -> Result<Server> {
        Server::parse(address, &[])
    }

    #[test]
    fn an_address_has_a_user_one_host_and_a_database() {
        let found =
            server("postgres://me%40x@db.Example:6000/sal%65s?sslmode=verify-full").unwrap();
        assert_eq!(found.to_string(), "postgres://me@x@db.example:6000/sales");
        assert_eq!(found.ssl_mode, SslMode::VerifyFull);
        let found = server("postgresql://me@[::1]").unwrap();
        assert_eq!(found.to_string(), "postgres://me@[::1]:5432/me");
        for wrong in [
            "mysql://me@h/d",
            "postgres://h/d",
            "postgres://me@/d",
            "postgres://me@a,b/d",
            "postgres://me@h:0/d",
            "postgres://me@h:x/d",
            "postgres://me@h/d?sslmode=perhaps",
            "postgres://me@h/d?host=/run",
            "postgres://me@h/%zz",
            "postgres://me@/run/x/d",
        ] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        for wrong in [
            "postgres://me:s3cret@h/d",
            "postgres://me@h/d?password=s3cret",
        ] {
            let error = server(wrong).unwrap_err().to_string();
            assert!(
                error.contains("password") && !error.contains("s3cret"),
                "{error}"
            );
        }
        let option = [("password".to_owned(), "s3cret".to_owned())];
        let error = Server::parse("postgres://me@h/d", &option).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
        let option = [(
            "password_env".to_owned(),
            "AWS_SECRET_ACCESS_KEY".to_owned(),
        )];
        assert!(Server::parse("postgres://me@h/d", &option).is_err());
    }

    #[test]
    fn names_of_tables_are_read_as_sql_reads_them() {
        let name = |text| SourceName::parse(text).map(|name| name.to_string());
        assert_eq!(name("Item").unwrap(), "\"public\".\"item\"");
        assert_eq!(name("a.\"B \"\"c.d\"").unwrap(), "\"a\".\"B \"\"c.d\"");
        for wrong in ["", "a.b.c", "a b", "\"a", "a.", "x;drop"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }
}
