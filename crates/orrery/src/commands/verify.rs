//! `orrery verify`: reads every byte; lists each damage with file and offset, and what cannot be known.

use orrery_storage::verify;

use super::output::Output;
use crate::arguments::VerifyArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: VerifyArguments) -> Result<(), Failure> {
    let directory = arguments.database.directory;
    let found = verify(&directory, |_| {})?;
    let mut text = String::new();
    for damage in &found.damages {
        text += &format!("{damage}\n");
    }
    if found.is_empty() {
        text = format!("{}: no damage found\n", directory.display());
    }
    for note in &found.notes {
        text += &format!("note: {note}\n");
    }
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()?;
    match found.damages.first() {
        None => Ok(()),
        Some(first) => Err(Failure::Damaged {
            directory,
            places: found.damages.len(),
            first: first.clone(),
        }),
    }
}
