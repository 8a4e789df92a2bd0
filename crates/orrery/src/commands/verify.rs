//! `orrery verify`: reads every byte; lists each damage with file and offset.

use orrery_storage::verify;

use super::output::Output;
use crate::arguments::VerifyArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: VerifyArguments) -> Result<(), Failure> {
    let directory = arguments.database.directory;
    let damages = verify(&directory, |_| {})?;
    let mut text = String::new();
    for damage in &damages {
        text += &format!("{damage}\n");
    }
    if damages.is_empty() {
        text = format!("{}: no damage found\n", directory.display());
    }
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()?;
    match damages.first() {
        None => Ok(()),
        Some(first) => Err(Failure::Damaged {
            directory,
            places: damages.len(),
            first: first.clone(),
        }),
    }
}
