//! `orrery compact`: merges the changes since the last load into the base files, and those of
//! tables into their files.

use std::sync::Arc;
use std::time::Duration;

use orrery_loader::{CompactOptions, SilentProgress, TerminalProgress, changes_of};
use orrery_storage::{ByteCount, Retention, WriterOptions};

use crate::arguments::CompactArguments;
use crate::commands::data::load::warn_of_little_memory;
use crate::commands::http::{post, server_url};
use crate::commands::output::Output;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;
use crate::units::Counted;

pub(crate) fn run(arguments: CompactArguments) -> Result<(), Failure> {
    let directory = match (&arguments.directory, &arguments.server) {
        (Some(directory), _) => directory,
        (None, Some(server)) => return through_server(server),
        (None, None) => {
            return Err(Failure::Other(
                "no database; give --db DIR or --server URL".to_owned(),
            ));
        }
    };
    warn_of_little_memory("compact", arguments.memory.0);
    let place = DatabasePlace::of(directory, &arguments.cache)?;
    let database = Arc::new(place.open()?);
    let writer = database.open_writer(WriterOptions::default())?;
    let mut options = CompactOptions {
        memory_bytes: arguments.memory.0,
        ..CompactOptions::default()
    };
    if let Some(threads) = arguments.threads {
        options.threads = threads.max(1);
    }
    let tables = orrery_loader::compact_tables(&writer, &SilentProgress)?;
    let changes = changes_of(&writer.database().view_of_process());
    orrery_allocator::for_load(options.memory_bytes);
    let report = orrery_loader::compact(&writer, &options, &TerminalProgress::new())?;
    let mut text = match changes {
        0 if tables > 0 => String::new(),
        0 => "there are no changes to be compacted\n".to_owned(),
        _ => format!(
            "{} taken into the base in {:.1} s\n{}, {} on disk; peak memory {}\n",
            Counted(changes, "change"),
            report.seconds,
            Counted(report.quads, "quad"),
            ByteCount(report.database_bytes),
            ByteCount(report.peak_memory_bytes),
        ),
    };
    if tables > 0 {
        text += &format!("{} written anew\n", Counted(tables, "table"));
    }
    if arguments.forget_history {
        // Commits that cancel each other leave no changes to compact, but they are history.
        writer.checkpoint()?;
        let nothing = Retention {
            commits_max: 0,
            age_max: Duration::ZERO,
        };
        let is_forgotten = writer.forget_history(&nothing)?;
        text += if is_forgotten {
            "older states are given up\n"
        } else {
            "there are no older states\n"
        };
    }
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

/// Has the server compact its database; returns when it is done.
fn through_server(server: &str) -> Result<(), Failure> {
    let url = server_url(server, "compact")?;
    let report = post(url, "text/plain", reqwest::Body::from(""))?;
    let mut output = Output::open(None)?;
    output.drain(&mut report.into_bytes())?;
    output.finish()
}
