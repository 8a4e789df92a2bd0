//! `orrery limit`: how much somebody may use.

use orrery_guard::{Command, LimitedWhom, Limits};

use super::access::{Part, change, list, named};
use crate::arguments::{LimitArguments, LimitCommand, LimitedArguments};
use crate::failure::Failure;

pub(crate) fn run(command: LimitCommand) -> Result<(), Failure> {
    let (place, command) = match command {
        LimitCommand::List { place, format } => return list(&place, format, Part::Limits),
        LimitCommand::Set { place, of, limits } => {
            let of = limited(of)?;
            let limits = limits_of(&limits);
            (place, Command::SetLimits { of, limits })
        }
        LimitCommand::Remove { place, of } => {
            let of = limited(of)?;
            (place, Command::RemoveLimits { of })
        }
    };
    change(&place, &command)
}

fn limited(arguments: LimitedArguments) -> Result<LimitedWhom, Failure> {
    if let Some(name) = arguments.user {
        return Ok(LimitedWhom::User(named(&name)?));
    }
    if let Some(name) = arguments.group {
        return Ok(LimitedWhom::Group(named(&name)?));
    }
    Ok(match arguments.key {
        Some(key) => LimitedWhom::Key(key),
        None if arguments.authenticated => LimitedWhom::Authenticated,
        None => LimitedWhom::Anyone,
    })
}

fn limits_of(arguments: &LimitArguments) -> Limits {
    let milliseconds = |time: std::time::Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
    Limits {
        concurrent: arguments.concurrent,
        time_ms: arguments.time.map(|time| milliseconds(time.0)),
        rows: arguments.rows,
        bytes: arguments.bytes.map(|bytes| bytes.0),
        cost: arguments.cost.map(|cost| cost.0),
    }
}
