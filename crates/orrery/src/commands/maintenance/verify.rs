//! `orrery verify`: reads every byte of a database, and lists damage with file and offset.

use orrery_storage::verify_with;

use crate::arguments::VerifyArguments;
use crate::commands::output::Output;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;

pub(crate) fn run(arguments: VerifyArguments) -> Result<(), Failure> {
    let directory = arguments.database.directory;
    // In an object store this verifies the stored objects, not the cached copies.
    let place = DatabasePlace::past_the_cache(&directory, &arguments.database.cache)?;
    let found = verify_with(&*place.file_system(), place.directory(), |_| {})?;
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
