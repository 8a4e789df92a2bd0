//! The search for loadable files below a directory.

use std::fs;
use std::path::{Path, PathBuf};

use orrery_loader::Format;

use crate::failure::Failure;

/// Maximum depth of nested directories.
const DEPTH_MAX: usize = 64;
/// Maximum number of files that are loaded at once.
const FILES_MAX: usize = 1_000_000;

/// The result of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FilesFound {
    /// The files, in the order of their names, directory by directory.
    pub(crate) files: Vec<PathBuf>,
    /// Number of files whose names indicate no format.
    pub(crate) passed_over: u64,
}

/// Finds all files below a directory whose names indicate a format, or all without exception. Skips
/// hidden files and directories silently; does not follow links to directories, for they may lead
/// back.
pub(crate) fn files_below(directory: &Path, takes_all: bool) -> Result<FilesFound, Failure> {
    let mut found = FilesFound::default();
    collect(directory, takes_all, 0, &mut found)?;
    Ok(found)
}

fn collect(
    directory: &Path,
    takes_all: bool,
    depth: usize,
    found: &mut FilesFound,
) -> Result<(), Failure> {
    if depth > DEPTH_MAX {
        return Err(Failure::Other(format!(
            "{}: more than {DEPTH_MAX} directories within each other; load a part of them",
            directory.display()
        )));
    }
    let failed = |error| Failure::file(directory, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let is_directory = entry.file_type().map_err(failed)?.is_dir();
        paths.push((entry.path(), is_directory));
    }
    paths.sort_unstable();
    for (path, is_directory) in paths {
        if is_directory {
            collect(&path, takes_all, depth + 1, found)?;
        } else if path.is_file() && (takes_all || Format::from_path(&path).is_some()) {
            found.files.push(path);
        } else if path.is_file() {
            found.passed_over += 1;
        }
        if found.files.len() > FILES_MAX {
            return Err(Failure::Other(format!(
                "more than {FILES_MAX} files below {}; load a part of them",
                directory.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_the_order_of_their_names_and_others_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        for directory in ["b/c", "d", ".hidden"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in [
            "z.nt",
            "a.ttl.gz",
            "b/c/x.rdf",
            "b/notes.txt",
            ".hidden/x.nt",
            "d/.x.nt",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(root, root.join("d/loop")).unwrap();
        let names = |takes_all| {
            let found = files_below(root, takes_all).unwrap();
            let names = found
                .files
                .iter()
                .map(|path| path.strip_prefix(root).unwrap());
            let names: Vec<String> = names.map(|path| path.display().to_string()).collect();
            (names.join(" "), found.passed_over)
        };
        assert_eq!(names(false), ("a.ttl.gz b/c/x.rdf z.nt".to_owned(), 1));
        assert_eq!(
            names(true),
            ("a.ttl.gz b/c/x.rdf b/notes.txt z.nt".to_owned(), 0)
        );
    }
}
