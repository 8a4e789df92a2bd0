//! `orrery backup` and `orrery restore`: copies of a database elsewhere, and back.

use std::fmt::Write as _;
use std::future::Future;

use orrery_backup::{BackupList, Target};
use orrery_storage::{Asker, ByteCount, ReadScope};

use crate::arguments::{BackupArguments, RestoreArguments};
use crate::commands::output::Output;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;
use crate::units::{Counted, ShowTime};

pub(crate) fn backup(arguments: BackupArguments) -> Result<(), Failure> {
    let target = Target::parse(&arguments.to, std::env::vars())?;
    let place = arguments.database.place()?;
    let asks = ReadScope::all_graphs(Asker::Process);
    let files = place.file_system();
    let taken = orrery_backup::backup(&*files, place.directory(), &target, &asks);
    let report = run(taken)?;
    let mut text = format!(
        "backup {} in {}: {}, {}, of which {} were copied now\n",
        report.number,
        target.name(),
        Counted(report.files as u64, "file"),
        ByteCount(report.bytes),
        ByteCount(report.bytes_copied),
    );
    if let Some(keep) = arguments.keep {
        let pruned = run(orrery_backup::prune(&target, keep as usize))?;
        text += &format!(
            "{} removed, with {} of {}\n",
            Counted(pruned.removed.len() as u64, "older backup"),
            Counted(pruned.objects as u64, "file"),
            ByteCount(pruned.bytes),
        );
    }
    print(text)
}

pub(crate) fn restore(arguments: RestoreArguments) -> Result<(), Failure> {
    let target = Target::parse(&arguments.from, std::env::vars())?;
    let Some(directory) = arguments.directory else {
        return print(listed(&run(BackupList::read_all(&target))?)?);
    };
    let place = DatabasePlace::of(&directory, &arguments.cache)?;
    let files = place.file_system();
    let restored = orrery_backup::restore(&target, arguments.number, &files, place.directory());
    let report = run(restored)?;
    print(format!(
        "{}: {} from backup {}, {}, {}, all checksums right\n",
        directory.display(),
        Counted(report.quads, "quad"),
        report.number,
        Counted(report.files as u64, "file"),
        ByteCount(report.bytes),
    ))
}

/// One line per backup, the oldest first.
fn listed(lists: &[BackupList]) -> Result<String, Failure> {
    let mut text = String::new();
    for list in lists {
        let files = Counted(list.files.len() as u64, "file");
        let database = match &list.database {
            Some(database) => format!("{} ({})", database.identity, database.directory),
            None => "an older version, which did not note which database".to_owned(),
        };
        writeln!(
            text,
            "{}  {}  commit {}  {files}, {}  of {database}",
            list.number,
            ShowTime(list.time_micros),
            list.commit,
            ByteCount(list.bytes())
        )
        .map_err(|error| Failure::Other(error.to_string()))?;
    }
    Ok(text)
}

/// Runs work with a store to its end.
fn run<T>(work: impl Future<Output = Result<T, orrery_backup::Error>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("cannot start: {error}")))?;
    Ok(runtime.block_on(work)?)
}

fn print(text: String) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}
