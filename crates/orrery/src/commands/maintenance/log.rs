//! `orrery log`: lists the retained commits of a database, the newest first.

use std::fmt::Write as _;

use orrery_storage::{CommitEntry, format_time};

use crate::arguments::{LogArguments, ReportFormat};
use crate::commands::output::Output;
use crate::failure::Failure;
use crate::units::ShowCount;

pub(crate) fn run(arguments: LogArguments) -> Result<(), Failure> {
    let database = arguments.database.place()?.open()?;
    let mut commits = database.commits()?;
    commits.reverse();
    commits.truncate(arguments.limit);
    let text = match arguments.format {
        ReportFormat::Text => people(&commits),
        ReportFormat::Json => programs(&commits)?,
    };
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

fn people(commits: &[CommitEntry]) -> String {
    let mut text = format!(
        "{:>10}  {:<27}  {:>15}  {:>15}  who\n",
        "commit", "time", "added", "removed"
    );
    for commit in commits {
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{:>10}  {:<27}  {:>15}  {:>15}  {}",
            commit.number,
            format_time(commit.time_us),
            ShowCount(commit.added),
            ShowCount(commit.removed),
            commit.who
        );
    }
    text
}

fn programs(commits: &[CommitEntry]) -> Result<String, Failure> {
    let entries: Vec<_> = commits
        .iter()
        .map(|commit| {
            serde_json::json!({
                "commit": commit.number,
                "time": format_time(commit.time_us),
                "added": commit.added,
                "removed": commit.removed,
                "who": commit.who,
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&entries);
    let mut text = text.map_err(|error| Failure::Other(error.to_string()))?;
    text.push('\n');
    Ok(text)
}
