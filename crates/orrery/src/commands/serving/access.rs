//! `orrery user`, `group`, `key` and `grant`: manage users and rights, locally or through a
//! server's admin socket. `limit` shares some functions.
//!
//! ```text
//! arguments -> command of orrery_access -> transaction of the database | POST /admin/access
//!           -> generated secrets, shown once
//! ```

use std::io::BufRead as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use orrery_access::{
    Command, Done, Identity, ListedLimits, Listing, Name, NewPassword, Right, Target, Whom,
};
use orrery_storage::{WriterOptions, format_time};

use crate::arguments::{
    AccessPlace, GrantCommand, GroupCommand, KeyCommand, PasswordArguments, ReportFormat,
    RightArgument, TargetArguments, UserCommand, WhomArguments,
};
use crate::commands::http::{get, post, server_url};
use crate::commands::output::Output;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;

/// Path of users, groups, keys and rules at the admin socket.
const PATH: &str = "admin/access";
const SECONDS_PER_DAY: u64 = 86_400;

pub(crate) fn user(command: UserCommand) -> Result<(), Failure> {
    let (place, command) = match command {
        UserCommand::List { place, format } => return list(&place, format, Part::Users),
        UserCommand::Add {
            place,
            password,
            administrator,
            groups,
            identities,
            name,
        } => {
            let command = Command::AddUser {
                user: named(&name)?,
                password: new_password(&password)?,
                administrator,
                groups: names(&groups)?,
                identities: called(&identities)?,
            };
            (place, command)
        }
        UserCommand::Set {
            place,
            identities,
            name,
        } => {
            let command = Command::SetUser {
                user: named(&name)?,
                password: None,
                administrator: None,
                locked: None,
                identities: called(&identities.more)?,
                no_identities: called(&identities.no_more)?,
            };
            (place, command)
        }
        UserCommand::Password {
            place,
            password,
            name,
        } => {
            let password = new_password(&password)?;
            (place, set(&name, Some(password), None, None)?)
        }
        UserCommand::Lock { place, name } => (place, set(&name, None, None, Some(true))?),
        UserCommand::Unlock { place, name } => (place, set(&name, None, None, Some(false))?),
        UserCommand::Promote { place, name } => (place, set(&name, None, Some(true), None)?),
        UserCommand::Demote { place, name } => (place, set(&name, None, Some(false), None)?),
        UserCommand::Remove { place, name } => {
            let user = named(&name)?;
            (place, Command::RemoveUser { user })
        }
    };
    change(&place, &command)
}

pub(crate) fn group(command: GroupCommand) -> Result<(), Failure> {
    let (place, command) = match command {
        GroupCommand::List { place, format } => return list(&place, format, Part::Groups),
        GroupCommand::Add { place, name } => {
            let group = named(&name)?;
            (place, Command::AddGroup { group })
        }
        GroupCommand::Set {
            place,
            identities,
            name,
        } => {
            let command = Command::SetGroup {
                group: named(&name)?,
                identities: called(&identities.more)?,
                no_identities: called(&identities.no_more)?,
            };
            (place, command)
        }
        GroupCommand::Join { place, name, users } => {
            let (group, users) = (named(&name)?, names(&users)?);
            (place, Command::Join { group, users })
        }
        GroupCommand::Leave { place, name, users } => {
            let (group, users) = (named(&name)?, names(&users)?);
            (place, Command::Leave { group, users })
        }
        GroupCommand::Remove { place, name } => {
            let group = named(&name)?;
            (place, Command::RemoveGroup { group })
        }
    };
    change(&place, &command)
}

pub(crate) fn key(command: KeyCommand) -> Result<(), Failure> {
    let (place, command) = match command {
        KeyCommand::List { place, format } => return list(&place, format, Part::Keys),
        KeyCommand::Add {
            place,
            note,
            days,
            user,
        } => {
            let ends = days.map(|days| now() + u64::from(days) * SECONDS_PER_DAY);
            let user = named(&user)?;
            (place, Command::AddKey { user, note, ends })
        }
        KeyCommand::Remove { place, key } => (place, Command::RemoveKey { key }),
    };
    change(&place, &command)
}

pub(crate) fn grant(command: GrantCommand) -> Result<(), Failure> {
    let (place, command) = match command {
        GrantCommand::List { place, format } => return list(&place, format, Part::Rules),
        GrantCommand::Add {
            place,
            to,
            on,
            right,
        } => {
            let right = match right {
                RightArgument::Read => Right::Read,
                RightArgument::Write => Right::Write,
                RightArgument::Administer => Right::Administer,
            };
            let (to, on) = (whom(&to)?, target(on)?);
            (place, Command::Grant { to, right, on })
        }
        GrantCommand::Remove { place, rule } => (place, Command::Revoke { rule }),
    };
    change(&place, &command)
}

fn set(
    name: &str,
    password: Option<NewPassword>,
    administrator: Option<bool>,
    locked: Option<bool>,
) -> Result<Command, Failure> {
    Ok(Command::SetUser {
        user: named(name)?,
        password,
        administrator,
        locked,
        identities: Vec::new(),
        no_identities: Vec::new(),
    })
}

fn named(text: &str) -> Result<Name, Failure> {
    Ok(Name::new(text).map_err(orrery_access::Error::from)?)
}

fn names(texts: &[String]) -> Result<Vec<Name>, Failure> {
    let names = texts.iter().map(|text| named(text));
    names.collect()
}

fn called(texts: &[String]) -> Result<Vec<Identity>, Failure> {
    let identities = texts
        .iter()
        .map(|text| Ok(Identity::new(text).map_err(orrery_access::Error::from)?));
    identities.collect()
}

fn new_password(arguments: &PasswordArguments) -> Result<NewPassword, Failure> {
    let Some(path) = &arguments.password_file else {
        return Ok(match arguments.no_password {
            true => NewPassword::None,
            false => NewPassword::Made,
        });
    };
    let mut line = String::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().read_line(&mut line),
        false => std::fs::read_to_string(path).map(|text| {
            line = text.lines().next().unwrap_or_default().to_owned();
            line.len()
        }),
    };
    read.map_err(|error| Failure::file(path, error))?;
    let password = line.trim_end_matches(['\r', '\n']);
    Ok(NewPassword::Given(password.to_owned()))
}

pub(crate) fn whom(arguments: &WhomArguments) -> Result<Whom, Failure> {
    Ok(match (&arguments.user, &arguments.group) {
        (Some(name), _) => Whom::User(named(name)?),
        (None, Some(name)) => Whom::Group(named(name)?),
        (None, None) if arguments.authenticated => Whom::Authenticated,
        (None, None) => Whom::Anyone,
    })
}

fn target(arguments: TargetArguments) -> Result<Target, Failure> {
    if let Some(iri) = arguments.graph {
        return Ok(Target::Graph(iri));
    }
    if let Some(beginning) = arguments.graphs_below {
        return Ok(Target::GraphsBelow(beginning));
    }
    if let Some(query) = arguments.graphs_of {
        return Ok(Target::GraphsOf(query));
    }
    if let Some(schema) = arguments.schema {
        return Ok(Target::Schema(schema));
    }
    if let Some(table) = arguments.table {
        let (schema, name) = table.split_once('.').unwrap_or(("public", &table));
        return Ok(Target::Table {
            schema: schema.to_owned(),
            name: name.to_owned(),
        });
    }
    Ok(match arguments {
        TargetArguments {
            default_graph: true,
            ..
        } => Target::DefaultGraph,
        TargetArguments {
            all_tables: true, ..
        } => Target::AllTables,
        _ => Target::AllGraphs,
    })
}

/// Runs a command, and prints generated secrets once: each alone on a line of standard output, so
/// that a script can read them.
pub(crate) fn change(place: &AccessPlace, command: &Command) -> Result<(), Failure> {
    let done = match (&place.directory, &place.server) {
        (Some(directory), _) => change_here(&DatabasePlace::of(directory, &place.cache)?, command)?,
        (None, Some(server)) => {
            let url = server_url(server, PATH)?;
            let sent = serde_json::to_string(command).map_err(unexpected)?;
            let answer = post(url, "application/json", sent.into())?;
            serde_json::from_str(&answer).map_err(unexpected)?
        }
        (None, None) => return Err(no_place()),
    };
    let mut text = String::new();
    for secret in [&done.given.password, &done.given.key]
        .into_iter()
        .flatten()
    {
        text.push_str(secret);
        text.push('\n');
        eprintln!("it is shown once: keep it where nobody else reads it");
    }
    if let Some(rule) = done.given.rule {
        text.push_str(&format!("rule {rule}\n"));
    }
    eprintln!("commit {}", done.commit);
    write_out(text)
}

fn change_here(place: &DatabasePlace, command: &Command) -> Result<Done, Failure> {
    let database = Arc::new(place.create_or_open()?);
    let writer = database.open_writer(WriterOptions::default())?;
    let who = format!("orrery: {}", command.summary());
    let (given, commit) =
        orrery_access::change(&writer, &who, |catalog| command.apply(catalog, now()))?;
    Ok(Done { commit, given })
}

/// The part of the listing that a command prints.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Users,
    Groups,
    Keys,
    Rules,
    Limits,
}

pub(crate) fn list(place: &AccessPlace, format: ReportFormat, part: Part) -> Result<(), Failure> {
    let listing = match (&place.directory, &place.server) {
        (Some(directory), _) => {
            let place = DatabasePlace::of(directory, &place.cache)?;
            let snapshot = place.open()?.snapshot();
            Listing::of(&orrery_access::read(snapshot.tables())?)
        }
        (None, Some(server)) => {
            let answer = get(server_url(server, PATH)?)?;
            serde_json::from_str(&answer).map_err(unexpected)?
        }
        (None, None) => return Err(no_place()),
    };
    if matches!(format, ReportFormat::Json) {
        let json = match part {
            Part::Users => serde_json::to_string(&listing.users),
            Part::Groups => serde_json::to_string(&listing.groups),
            Part::Keys => serde_json::to_string(&listing.keys),
            Part::Rules => serde_json::to_string(&listing.rules),
            Part::Limits => serde_json::to_string(&listing.limits),
        };
        return write_out(json.map_err(unexpected)? + "\n");
    }
    write_out(lines(&listing, part))
}

/// One line per entry, in columns.
fn lines(listing: &Listing, part: Part) -> String {
    let joined = |names: &[Name]| {
        let names: Vec<&str> = names.iter().map(Name::as_str).collect();
        names.join(" ")
    };
    let listed = |identities: &[Identity]| {
        let identities: Vec<&str> = identities.iter().map(Identity::as_str).collect();
        identities.join(" ")
    };
    let rows: Vec<Vec<String>> = match part {
        Part::Users => {
            let row = |user: &orrery_access::ListedUser| {
                let marks = [
                    (user.administrator, "administrator"),
                    (user.locked, "locked"),
                    (!user.password, "no-password"),
                ];
                let marks = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark);
                let marks: Vec<&str> = marks.collect();
                vec![
                    user.name.to_string(),
                    marks.join(" "),
                    joined(&user.groups),
                    listed(&user.identities),
                ]
            };
            listing.users.iter().map(row).collect()
        }
        Part::Groups => {
            let groups = listing.groups.iter();
            groups
                .map(|group| {
                    vec![
                        group.name.to_string(),
                        joined(&group.users),
                        listed(&group.identities),
                    ]
                })
                .collect()
        }
        Part::Keys => {
            let row = |key: &orrery_access::ListedKey| {
                vec![
                    key.key.clone(),
                    key.user.to_string(),
                    key.ends.map_or("never".to_owned(), day),
                    key.note.escape_default().to_string(),
                ]
            };
            listing.keys.iter().map(row).collect()
        }
        Part::Rules => {
            let row = |rule: &orrery_access::ListedRule| {
                vec![
                    rule.rule.to_string(),
                    rule.to.to_string(),
                    rule.right.to_string(),
                    rule.on.to_string(),
                ]
            };
            listing.rules.iter().map(row).collect()
        }
        Part::Limits => listing.limits.iter().map(limit_row).collect(),
    };
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The cells of a row of limits.
fn limit_row(listed: &ListedLimits) -> Vec<String> {
    let limits = &listed.limits;
    let said = [
        limits.concurrent.map(|count| format!("{count} at a time")),
        limits.time_ms.map(|ms| format!("{} s", ms as f64 / 1000.0)),
        limits.rows.map(|rows| format!("{rows} rows")),
        limits.bytes.map(|bytes| format!("{bytes} bytes")),
        limits
            .memory
            .map(|bytes| format!("{bytes} bytes of memory")),
        limits
            .cost
            .map(|cost| format!("{} touches in {} s", cost.touches, cost.seconds)),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    vec![listed.of.to_string(), said.join(", ")]
}

/// The day of a time in seconds of the Unix epoch.
fn day(seconds: u64) -> String {
    let microseconds = i64::try_from(seconds.saturating_mul(1_000_000));
    let mut time = format_time(microseconds.unwrap_or(i64::MAX));
    time.truncate(time.find('T').unwrap_or(time.len()));
    time
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

pub(crate) fn write_out(text: String) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

pub(crate) fn unexpected(error: serde_json::Error) -> Failure {
    Failure::Other(format!("the server did not answer as expected: {error}"))
}

fn no_place() -> Failure {
    Failure::Other("no database; give --db DIR or --server URL".to_owned())
}
