//! `orrery bench`: starts the program `orrery-bench`, which generates data and measures this
//! program from outside.
//!
//! It is a separate program so that a build of the database need not build its measurements.

use std::path::PathBuf;
use std::process::Command;

use crate::arguments::BenchArguments;
use crate::failure::Failure;

/// The program's name, in the directory of this one.
const PROGRAM: &str = "orrery-bench";

pub(crate) fn run(arguments: BenchArguments) -> Result<(), Failure> {
    let program = beside().map_err(|error| failure(&PathBuf::from(PROGRAM), &error))?;
    let mut command = Command::new(&program);
    command.args(arguments.arguments);
    let error = replace_this_process(&mut command);
    Err(failure(&program, &error))
}

fn beside() -> std::io::Result<PathBuf> {
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// Replaces this process, so that signals and the exit status are the program's own. Returns only
/// if it cannot be started.
#[cfg(unix)]
fn replace_this_process(command: &mut Command) -> std::io::Error {
    use std::os::unix::process::CommandExt as _;
    command.exec()
}

#[cfg(not(unix))]
fn replace_this_process(command: &mut Command) -> std::io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

fn failure(program: &std::path::Path, error: &std::io::Error) -> Failure {
    let what = orrery_storage::reason(error);
    Failure::Other(format!(
        "bench needs the program {}: {what}; build it with `cargo build --release --workspace --bins`",
        program.display()
    ))
}
