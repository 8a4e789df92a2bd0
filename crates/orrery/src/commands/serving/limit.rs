//! `orrery limit`: manages the limits of users, groups and keys.

use orrery_access::{Command, LimitedWhom, Limits};

use crate::arguments::{LimitArguments, LimitCommand, LimitedArguments};
use crate::commands::serving::access::{Part, change, list, whom};
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
    match arguments.key {
        Some(key) => Ok(LimitedWhom::Key(key)),
        None => whom(&arguments.whom).map(LimitedWhom::Who),
    }
}

fn limits_of(arguments: &LimitArguments) -> Limits {
    let milliseconds = |time: std::time::Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
    Limits {
        concurrent: arguments.concurrent,
        time_ms: arguments.time.map(|time| milliseconds(time.0)),
        rows: arguments.rows,
        bytes: arguments.bytes.map(|bytes| bytes.0),
        memory: arguments.memory.map(|bytes| bytes.0),
        cost: arguments.cost.map(|cost| cost.0),
    }
}
