//! The database under test: static data, users with rules and limits, the table.

use std::path::Path;
use std::sync::Arc;

use orrery_access::{Budget, Command, LimitedWhom, Limits, Name, NewPassword, Right, Target, Whom};
use orrery_storage::{Database, WriterOptions};

use super::places::{GRAPHS, Role, TABLE};
use crate::drivers::BenchError;

pub(super) const PASSWORD: &str = "of the soak";

/// Adds who asks, what they may and how much, and gives the editors' key.
pub(super) fn add_users(database: &Path) -> Result<String, BenchError> {
    let failed = |error: orrery_access::Error| BenchError::Output {
        command: "users".to_owned(),
        what: error.to_string(),
    };
    let name = |text: &str| Name::new(text).map_err(|error| failed(error.into()));
    let whom = |role: Role| -> Result<Whom, BenchError> {
        Ok(match role {
            Role::Anonymous => Whom::Anyone,
            _ => Whom::User(name(role.user())?),
        })
    };
    let mut commands = Vec::new();
    for role in [Role::Administrator, Role::Editor, Role::Half, Role::Limited] {
        commands.push(Command::AddUser {
            user: name(role.user())?,
            password: NewPassword::Given(PASSWORD.to_owned()),
            administrator: role == Role::Administrator,
            groups: Vec::new(),
            identities: Vec::new(),
        });
    }
    let below = |family: &str| Target::GraphsBelow(format!("{GRAPHS}{family}"));
    let table = Target::Table {
        schema: "public".to_owned(),
        name: TABLE.to_owned(),
    };
    for (role, right, on) in [
        (Role::Anonymous, Right::Read, Target::DefaultGraph),
        (Role::Editor, Right::Write, Target::DefaultGraph),
        (Role::Editor, Right::Write, below("")),
        (Role::Editor, Right::Write, table),
        (Role::Half, Right::Write, below("a/")),
        (Role::Limited, Right::Read, Target::AllGraphs),
    ] {
        let to = whom(role)?;
        commands.push(Command::Grant { to, right, on });
    }
    let limits = |concurrent, rows| Limits {
        concurrent: Some(concurrent),
        time_ms: Some(5_000),
        rows: Some(rows),
        bytes: None,
        memory: None,
        cost: Some(Budget {
            touches: 20_000_000,
            seconds: 10,
        }),
    };
    for (role, limits) in [
        (Role::Limited, limits(4, 2_000)),
        (Role::Anonymous, limits(6, 20_000)),
    ] {
        commands.push(Command::SetLimits {
            of: LimitedWhom::Who(whom(role)?),
            limits,
        });
    }
    commands.push(Command::AddKey {
        user: name(Role::KeyEditor.user())?,
        note: "of the soak".to_owned(),
        ends: None,
    });
    let database = Arc::new(Database::open(database)?);
    let writer = database.open_writer(WriterOptions::default())?;
    let done = orrery_access::change(&writer, "bench soak", |catalog| {
        let (mut catalog, mut key) = (catalog.clone(), None);
        for command in &commands {
            let (next, given) = command.apply(&catalog, 0)?;
            catalog = next;
            key = given.key.or(key);
        }
        Ok((catalog, key))
    });
    let (key, _commit) = done.map_err(failed)?;
    key.ok_or_else(|| BenchError::Output {
        command: "users".to_owned(),
        what: "no key was made".to_owned(),
    })
}
