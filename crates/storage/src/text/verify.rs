//! The verification of full-text indexes: checksums, and the same literals as the rules select.

use std::path::Path;

use orrery_full_text::OpenPart;
use orrery_term::TermId;

use super::build::for_each_literal;
use super::file::TextFile;
use crate::files::components::{Component, ComponentApart, FileEntry};
use crate::files::damage::{Verified, damage_of};
use crate::files::io::FileSystem;
use crate::files::listed_files::verify_directory;
use crate::files::manifest::Manifest;
use crate::quads::row_checks::hash_bytes;
use crate::snapshots::base::Base;
use crate::{Error, Result};

/// Adds what is wrong with the indices of texts of all bases.
pub(crate) fn verify_text_files(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: &Manifest,
    verified: &mut Verified,
) {
    for base in &manifest.bases {
        let Some(entry) = &base.text else { continue };
        let before = verified.damages.len();
        let check = |path: &Path, component, _: &FileEntry| -> Result<Vec<Error>> {
            if component != Component::Apart(ComponentApart::Texts) {
                let what = "it is not a file of an index of texts";
                return Err(Error::corrupt(path, 0, what));
            }
            let file = TextFile::open(file_system, directory, entry)?;
            Ok(file.block_file().verify_all())
        };
        let damages = &mut verified.damages;
        verify_directory(file_system, directory, &entry.directory, check, damages);
        if !verified.is_empty() || verified.damages.len() > before {
            continue; // What is damaged need not fit.
        }
        let opened = Base::open(file_system, directory, base);
        let path = directory.join(&entry.directory.name);
        if let Err(error) = opened.and_then(|base| check_documents(&path, &base)) {
            verified.damages.push(damage_of(error, directory));
        }
    }
}

/// Fails if the index does not have the literals that the rules select.
fn check_documents(path: &Path, base: &Base) -> Result<()> {
    let Some(file) = base.text() else {
        return Ok(());
    };
    let mut expected = Sum::default();
    let mut failed = None;
    for_each_literal(base, file.rules(), |ids| {
        for id in ids {
            match is_text(base, file, id) {
                Ok(true) => expected.add(id.bits()),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        }
        failed.is_none()
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let mut found = Sum::default();
    for part in file.parts()? {
        let mut last = None;
        for number in numbers(file, part)? {
            if last.is_some_and(|last| last >= number) {
                let what = "the numbers of its documents do not ascend";
                return Err(Error::corrupt(path, 0, what));
            }
            last = Some(number);
            found.add(number);
        }
    }
    match found == expected {
        true => Ok(()),
        false => Err(Error::corrupt(
            path,
            0,
            format!(
                "it has {} texts, which are not the {} that its rules select",
                found.count, expected.count
            ),
        )),
    }
}

fn numbers<'p>(file: &TextFile, part: &'p OpenPart) -> Result<impl Iterator<Item = u64> + use<'p>> {
    part.numbers().map_err(|error| file.error(error))
}

fn is_text(base: &Base, file: &TextFile, id: TermId) -> Result<bool> {
    if let Some(term) = id.to_inline_term() {
        return Ok(file.rules().text_of(&term).is_some());
    }
    let mut key = Vec::new();
    base.dictionary().key(id.payload(), &mut key)?;
    let term = orrery_term::parse_key(&key)
        .map_err(|error| Error::corrupt(base.directory(), 0, error.to_string()))?;
    Ok(file.rules().text_of(&term).is_some())
}

/// Number and sum of hashes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    hashes: u64,
}

impl Sum {
    fn add(&mut self, number: u64) {
        self.count += 1;
        self.hashes = self.hashes.wrapping_add(hash_bytes(&number.to_le_bytes()));
    }
}
