//! Session settings, by PostgreSQL's names.
//!
//! Some say what cannot be otherwise here (texts are UTF-8, times are in UTC): these can be set to
//! what they are. Some are kept and have no effect, for clients set them as a matter of course.
//! What is set within a transaction is undone with it, and `SET LOCAL` ends with it.
//!
//! Two are not kept but looked up each time: `in_hot_standby`, which says that this process does
//! not write now, and `transaction_read_only`, which says that changes would be refused. Clients
//! that look for the server which writes ask for these (`target_session_attrs` of libpq,
//! `targetServerType` of the JDBC driver).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parking_lot::Mutex;

use crate::distributed::writer_source::Standing;
use crate::{Error, Result, SqlState};

/// The version of PostgreSQL whose clients' ways are followed.
pub(crate) const SERVER_VERSION: &str = "15.0";
/// Settings of a client's own, such as `myapp.user`.
const OWN_MAX: usize = 100;
/// Is told anew when it changes, though nobody has set it.
const IN_HOT_STANDBY: &str = "in_hot_standby";
const IDLE_TIMEOUT: &str = "idle_in_transaction_session_timeout";
const TRANSACTION_READ_ONLY: &str = "transaction_read_only";
/// Longest value.
const VALUE_BYTES_MAX: usize = 10_000;

/// What a setting can be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Only what it is.
    Fixed,
    /// Only one of these, each of which means the first; other values are another server's.
    Same(&'static [&'static str]),
    Boolean,
    Text,
    /// A number, of milliseconds if it has no unit.
    Time,
    Number,
    OneOf(&'static [&'static str]),
}

struct Known {
    name: &'static str,
    value: &'static str,
    kind: Kind,
    /// Clients are told it at the start, and when it changes.
    is_reported: bool,
    about: &'static str,
}

const fn known(
    name: &'static str,
    value: &'static str,
    kind: Kind,
    is_reported: bool,
    about: &'static str,
) -> Known {
    Known {
        name,
        value,
        kind,
        is_reported,
        about,
    }
}

const UTF8: Kind = Kind::Same(&["utf8", "utf-8", "unicode"]);
const LEVELS: Kind = Kind::OneOf(&[
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
]);
const MESSAGES: Kind = Kind::OneOf(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "info", "warning", "error",
    "fatal", "panic",
]);

/// In the order of their names without regard to case.
const KNOWN: &[Known] = &[
    known("application_name", "", Kind::Text, true, "Who asks."),
    known(
        "block_size",
        "8192",
        Kind::Fixed,
        false,
        "For programs that ask for it.",
    ),
    known(
        "bytea_output",
        "hex",
        Kind::Same(&["hex"]),
        false,
        "How bytes are written.",
    ),
    known(
        "client_encoding",
        "UTF8",
        UTF8,
        true,
        "The encoding of texts.",
    ),
    known(
        "client_min_messages",
        "notice",
        MESSAGES,
        false,
        "Has no effect.",
    ),
    known(
        "DateStyle",
        "ISO, MDY",
        Kind::Same(&["iso, mdy", "iso", "iso,mdy", "iso, ymd", "iso, dmy"]),
        true,
        "How dates are written.",
    ),
    known(
        "default_table_access_method",
        "heap",
        Kind::Fixed,
        false,
        "How tables are kept, in PostgreSQL's word.",
    ),
    known(
        "default_transaction_isolation",
        "serializable",
        LEVELS,
        false,
        "Transactions are serializable whatever it says.",
    ),
    known(
        "default_transaction_read_only",
        "off",
        Kind::Boolean,
        true,
        "Refuses changes.",
    ),
    known(
        "extra_float_digits",
        "1",
        Kind::Number,
        false,
        "Has no effect: floats have the digits that they need.",
    ),
    known(
        IDLE_TIMEOUT,
        "0",
        Kind::Time,
        false,
        "How long a transaction may be without a statement; 0 is the server's time.",
    ),
    known(
        IN_HOT_STANDBY,
        "off",
        Kind::Fixed,
        true,
        "Whether another server writes, or none.",
    ),
    known(
        "integer_datetimes",
        "on",
        Kind::Fixed,
        true,
        "Times are integers.",
    ),
    known(
        "IntervalStyle",
        "postgres",
        Kind::Same(&["postgres", "iso_8601"]),
        true,
        "Kept for clients.",
    ),
    known(
        "is_superuser",
        "on",
        Kind::Fixed,
        true,
        "There are no rights yet.",
    ),
    known(
        "lc_collate",
        "C",
        Kind::Fixed,
        false,
        "Texts are compared by their bytes.",
    ),
    known(
        "lc_ctype",
        "C",
        Kind::Fixed,
        false,
        "Texts are compared by their bytes.",
    ),
    known("lc_messages", "C", Kind::Text, false, "Has no effect."),
    known("lc_monetary", "C", Kind::Text, false, "Has no effect."),
    known("lc_numeric", "C", Kind::Text, false, "Has no effect."),
    known("lc_time", "C", Kind::Text, false, "Has no effect."),
    known("lock_timeout", "0", Kind::Time, false, "Has no effect."),
    known(
        "max_identifier_length",
        "63",
        Kind::Fixed,
        false,
        "Bytes of a name.",
    ),
    known(
        "max_index_keys",
        "32",
        Kind::Fixed,
        false,
        "Columns of a key.",
    ),
    known("row_security", "on", Kind::Boolean, false, "Has no effect."),
    known(
        "search_path",
        "\"$user\", public",
        Kind::Text,
        true,
        "Where names without a schema are looked for.",
    ),
    known(
        "server_encoding",
        "UTF8",
        Kind::Fixed,
        true,
        "The encoding of texts.",
    ),
    known(
        "server_version",
        SERVER_VERSION,
        Kind::Fixed,
        true,
        "The version of PostgreSQL whose clients work.",
    ),
    known(
        "server_version_num",
        "150000",
        Kind::Fixed,
        false,
        "The same as a number.",
    ),
    known("session_authorization", "", Kind::Text, true, "The user."),
    known(
        "standard_conforming_strings",
        "on",
        Kind::Same(&["on", "true", "1", "yes"]),
        true,
        "A backslash in a text is one.",
    ),
    known(
        "statement_timeout",
        "0",
        Kind::Time,
        false,
        "Time of a statement; 0 is the server's.",
    ),
    known(
        "synchronous_commit",
        "on",
        Kind::Text,
        false,
        "Has no effect: commits are on disk.",
    ),
    known(
        "TimeZone",
        "UTC",
        Kind::Same(&[
            "utc",
            "gmt",
            "etc/utc",
            "z",
            "0",
            "+00",
            "+00:00",
            "universal",
            "zulu",
            "etc/gmt",
        ]),
        true,
        "Times are in UTC.",
    ),
    known(
        "transaction_isolation",
        "serializable",
        LEVELS,
        false,
        "Transactions are serializable whatever it says.",
    ),
    known(
        TRANSACTION_READ_ONLY,
        "off",
        Kind::Boolean,
        false,
        "Whether changes are refused now.",
    ),
    known(
        "work_mem",
        "4MB",
        Kind::Text,
        false,
        "Has no effect: memory is the server's.",
    ),
    known(
        "xmloption",
        "content",
        Kind::OneOf(&["content", "document"]),
        false,
        "Has no effect.",
    ),
];

fn known_as(name: &str) -> Option<&'static Known> {
    KNOWN
        .iter()
        .find(|known| known.name.eq_ignore_ascii_case(name))
}

/// How long a setting stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Session,
    Transaction,
}

/// What a session has set.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// What RESET goes back to, where that is not the default.
    at_start: BTreeMap<String, String>,
    session: BTreeMap<String, String>,
    local: BTreeMap<String, String>,
    /// Between BEGIN and COMMIT.
    open: Option<OpenTransaction>,
    changed: BTreeSet<&'static str>,
    standing: Standing,
    /// What a client was told last of `in_hot_standby`; none of nobody who was told.
    told_standby: Option<bool>,
}

/// What goes with a transaction.
#[derive(Debug)]
struct OpenTransaction {
    /// As they were at BEGIN.
    before: BTreeMap<String, String>,
    is_read_only: bool,
}

/// Whether a setting says how this process stands, and not what a client wants.
pub(crate) fn is_of_process(name: &str) -> bool {
    matches!(name, IN_HOT_STANDBY | TRANSACTION_READ_ONLY)
}

impl Settings {
    /// Those of a new session.
    pub(crate) fn of(user: &str, standing: Standing) -> Self {
        let name = "session_authorization".to_owned();
        Self {
            // The user is a setting too.
            at_start: BTreeMap::from([(name, user.to_owned())]),
            standing,
            ..Self::default()
        }
    }

    /// For a session, and for its plans.
    pub(crate) fn shared(self) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(self))
    }

    /// Says from now on where it is looked up whether this process writes.
    pub(crate) fn set_standing(&mut self, standing: Standing) {
        self.standing = standing;
    }

    /// Whether this process does not write now.
    pub(crate) fn is_standby(&self) -> bool {
        !self.standing.writes()
    }

    /// Whether who asks wants no changes to be made now.
    pub(crate) fn is_read_only(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_read_only)
            || self.is_on("default_transaction_read_only")
    }

    /// The value of a setting.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let name = known_as(name).map_or_else(|| name.to_lowercase(), |it| it.name.to_owned());
        let looked_up = match name.as_str() {
            IN_HOT_STANDBY => Some(self.is_standby()),
            TRANSACTION_READ_ONLY => Some(self.is_standby() || self.is_read_only()),
            _ => None,
        };
        if let Some(is_on) = looked_up {
            return Some(if is_on { "on" } else { "off" }.to_owned());
        }
        let given = [&self.local, &self.session, &self.at_start];
        let given = given.iter().find_map(|map| map.get(&name));
        match (given, known_as(&name)) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(known)) => Some(known.value.to_owned()),
            (None, None) => None,
        }
    }

    /// The same, for a text that names it.
    pub(crate) fn require(&self, name: &str) -> Result<String> {
        self.get(name).ok_or_else(|| unrecognized(name))
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "on")
    }

    /// All of them that PostgreSQL has: name, value, what it is about.
    pub(crate) fn all(&self) -> Vec<(&'static str, String, &'static str)> {
        let all = KNOWN.iter().map(|known| {
            let value = self.get(known.name).unwrap_or_default();
            (known.name, value, known.about)
        });
        all.collect()
    }

    /// Those that clients are told.
    pub(crate) fn reported(&mut self) -> Vec<(String, String)> {
        self.told_standby = Some(self.is_standby());
        let reported = KNOWN.iter().filter(|known| known.is_reported);
        let value = |name: &str| self.get(name).unwrap_or_default();
        reported
            .map(|known| (known.name.to_owned(), value(known.name)))
            .collect()
    }

    /// Those of them that have changed since this was asked.
    pub(crate) fn take_changed(&mut self) -> Vec<(String, String)> {
        let mut changed = std::mem::take(&mut self.changed);
        let is_standby = self.is_standby();
        if let Some(told) = &mut self.told_standby
            && std::mem::replace(told, is_standby) != is_standby
        {
            changed.insert(IN_HOT_STANDBY);
        }
        let value = |name: &str| self.get(name).unwrap_or_default();
        changed
            .into_iter()
            .map(|name| (name.to_owned(), value(name)))
            .collect()
    }

    /// `SET`; `DEFAULT` is none.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>, scope: Scope) -> Result<()> {
        let (name, value) = match value {
            Some(value) => (self.place(name)?, Some(checked(name, value)?)),
            None => (self.place(name)?, None),
        };
        if name == TRANSACTION_READ_ONLY {
            return self.set_read_only(value.is_some_and(|value| value == "on"));
        }
        self.note(&name);
        let map = match scope {
            Scope::Session => {
                self.local.remove(&name);
                &mut self.session
            }
            Scope::Transaction => &mut self.local,
        };
        match value {
            Some(value) => map.insert(name, value),
            None => map.remove(&name),
        };
        Ok(())
    }

    /// `SET TRANSACTION READ ONLY` or `READ WRITE`: of the open transaction, and without effect
    /// where there is none, as each statement is one of its own then.
    pub(crate) fn set_read_only(&mut self, is_read_only: bool) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if open.is_read_only && !is_read_only {
            return Err(Error::new(
                SqlState::ActiveSqlTransaction,
                "cannot set transaction read-write mode inside a read-only transaction",
            ));
        }
        open.is_read_only = is_read_only;
        Ok(())
    }

    /// What a client asks for as it comes. The zone of its machine is not held against it: it is
    /// told which one there is.
    pub(crate) fn set_at_start(&mut self, name: &str, value: &str) -> Result<()> {
        let is_place = name.eq_ignore_ascii_case("TimeZone");
        match self
            .place(name)
            .and_then(|place| Ok((place, checked(name, value)?)))
        {
            Ok((place, value)) => {
                self.at_start.insert(place, value);
                Ok(())
            }
            Err(_) if is_place => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// `RESET ALL`.
    pub(crate) fn reset(&mut self) {
        let names: Vec<String> = self
            .session
            .keys()
            .chain(self.local.keys())
            .cloned()
            .collect();
        names.iter().for_each(|name| self.note(name));
        self.session.clear();
        self.local.clear();
    }

    /// `BEGIN`.
    pub(crate) fn begin(&mut self, is_read_only: bool) {
        let open = self.open.get_or_insert_with(|| OpenTransaction {
            before: self.session.clone(),
            is_read_only: false,
        });
        open.is_read_only |= is_read_only;
    }

    /// The end of a transaction.
    pub(crate) fn end(&mut self, is_committed: bool) {
        let locals = std::mem::take(&mut self.local);
        locals.keys().for_each(|name| self.note(name));
        let Some(OpenTransaction { before, .. }) = self.open.take() else {
            return;
        };
        if !is_committed && before != self.session {
            let now = std::mem::replace(&mut self.session, before);
            now.keys().for_each(|name| self.note(name));
        }
    }

    /// How long a statement may take; none is as long as the server says.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        self.time("statement_timeout")
    }

    /// How long a transaction may be without a statement; none is as long as the server says.
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        self.time(IDLE_TIMEOUT)
    }

    /// A time that is set, and not zero.
    fn time(&self, name: &str) -> Option<Duration> {
        let set = self.get(name)?;
        let time = milliseconds(&set)?;
        (time > 0).then(|| Duration::from_millis(time))
    }

    fn note(&mut self, name: &str) {
        if let Some(known) = known_as(name).filter(|known| known.is_reported) {
            self.changed.insert(known.name);
        }
    }

    /// The name under which a setting is kept.
    fn place(&self, name: &str) -> Result<String> {
        match known_as(name) {
            Some(known) => Ok(known.name.to_owned()),
            // With a dot it is a client's own.
            None if !name.contains('.') => Err(unrecognized(name)),
            None if self.session.len() + self.local.len() >= OWN_MAX => Err(Error::new(
                SqlState::ProgramLimitExceeded,
                format!("a session keeps {OWN_MAX} settings"),
            )),
            None => Ok(name.to_lowercase()),
        }
    }
}

fn unrecognized(name: &str) -> Error {
    Error::new(
        SqlState::UndefinedObject,
        format!("unrecognized configuration parameter \"{name}\""),
    )
}

fn invalid(name: &str, value: &str) -> Error {
    Error::new(
        SqlState::InvalidParameterValue,
        format!("invalid value for parameter \"{name}\": \"{value}\""),
    )
}

/// A value as it is kept.
fn checked(name: &str, value: &str) -> Result<String> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(invalid(name, "a long one"));
    }
    let Some(known) = known_as(name) else {
        return Ok(value.to_owned());
    };
    let lower = value.trim().to_lowercase();
    match known.kind {
        Kind::Fixed if lower == known.value.to_lowercase() => Ok(known.value.to_owned()),
        Kind::Fixed => Err(Error::new(
            SqlState::CantChangeRuntimeParam,
            format!("parameter \"{name}\" cannot be changed"),
        )),
        Kind::Same(values) if values.contains(&lower.as_str()) => Ok(known.value.to_owned()),
        Kind::Same(_) => {
            Err(invalid(name, value).with_hint(format!("Here it is always {}.", known.value)))
        }
        Kind::Boolean => match lower.as_str() {
            "on" | "true" | "yes" | "1" | "t" | "y" => Ok("on".to_owned()),
            "off" | "false" | "no" | "0" | "f" | "n" => Ok("off".to_owned()),
            _ => Err(invalid(name, value)),
        },
        Kind::Text if known.name == "search_path" => search_path(value),
        Kind::Text => Ok(value.to_owned()),
        Kind::Time => match milliseconds(&lower) {
            Some(_) => Ok(value.trim().to_owned()),
            None => Err(invalid(name, value)),
        },
        Kind::Number => match lower.parse::<i32>() {
            Ok(number) => Ok(number.to_string()),
            Err(_) => Err(invalid(name, value)),
        },
        Kind::OneOf(values) if values.contains(&lower.as_str()) => Ok(lower),
        Kind::OneOf(_) => Err(invalid(name, value)),
    }
}

/// Names without a schema are looked for in `public`, and nowhere else but in the catalog.
fn search_path(value: &str) -> Result<String> {
    let names = value.split(',').map(|name| name.trim().trim_matches('"'));
    let mut own = names.filter(|name| !matches!(*name, "" | "$user" | "pg_catalog"));
    match own.next() {
        None | Some("public") => Ok(value.to_owned()),
        Some(_) => Err(Error::unsupported(
            "a search_path that does not begin with public",
        )),
    }
}

/// `5000`, `5s`, `1min`.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    // PostgreSQL's are 32 bits wide.
    number
        .checked_mul(unit)
        .filter(|time| *time <= i32::MAX as u64)
}

/// The columns that SHOW has.
pub(crate) fn columns_shown(name: &str) -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    Arc::new(match name.eq_ignore_ascii_case("all") {
        true => Schema::new(vec![text("name"), text("setting"), text("description")]),
        false => Schema::new(vec![text(&name.to_lowercase())]),
    })
}

/// The name of a setting as a text has it: `TIME ZONE` and `TRANSACTION ISOLATION LEVEL` are names
/// too.
pub(crate) fn setting_name<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let parts: Vec<&str> = parts.collect();
    let upper: Vec<String> = parts.iter().map(|part| part.to_uppercase()).collect();
    let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
    match upper.as_slice() {
        ["TIME", "ZONE"] => "TimeZone".to_owned(),
        ["TRANSACTION", "ISOLATION", "LEVEL"] => "transaction_isolation".to_owned(),
        ["SESSION", "AUTHORIZATION"] => "session_authorization".to_owned(),
        _ => parts.join("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_end_with_their_transaction() {
        let mut settings = Settings::default();
        let set = |settings: &mut Settings, value, scope| {
            settings
                .set("Application_Name", Some(value), scope)
                .unwrap();
        };
        set(&mut settings, "a", Scope::Session);
        settings.begin(false);
        set(&mut settings, "b", Scope::Session);
        set(&mut settings, "c", Scope::Transaction);
        assert_eq!(settings.get("application_name").unwrap(), "c");
        settings.end(true);
        assert_eq!(settings.get("application_name").unwrap(), "b");
        settings.begin(false);
        set(&mut settings, "d", Scope::Session);
        settings.end(false);
        assert_eq!(settings.get("application_name").unwrap(), "b");
        assert_eq!(settings.take_changed().len(), 1);
        assert!(settings.take_changed().is_empty());
    }

    #[test]
    fn values_that_mean_something_else_here_are_refused() {
        let mut settings = Settings::default();
        let mut set = |name: &str, value: &str| {
            let done = settings.set(name, Some(value), Scope::Session);
            done.map_err(|error| error.state.code())
        };
        assert_eq!(set("timezone", "utc"), Ok(()));
        assert_eq!(set("timezone", "Europe/Berlin"), Err("22023"));
        assert_eq!(set("client_encoding", "LATIN1"), Err("22023"));
        assert_eq!(set("server_version", "9"), Err("55P02"));
        assert_eq!(set("nonsense", "1"), Err("42704"));
        assert_eq!(set("my.own", "1"), Ok(()));
        assert_eq!(set("search_path", "\"$user\", public"), Ok(()));
        assert_eq!(set("search_path", "other"), Err("0A000"));
        assert_eq!(set("statement_timeout", "2s"), Ok(()));
        assert_eq!(set("statement_timeout", "2 weeks"), Err("22023"));
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(2)));
        assert!(settings.set_at_start("TimeZone", "Europe/Berlin").is_ok());
        assert_eq!(settings.get("TimeZone").unwrap(), "UTC");
    }

    #[test]
    fn the_list_is_in_order_and_its_values_are_taken() {
        let names: Vec<String> = KNOWN.iter().map(|it| it.name.to_lowercase()).collect();
        assert!(names.is_sorted());
        for known in KNOWN {
            assert_eq!(checked(known.name, known.value).unwrap(), known.value);
        }
    }
}
