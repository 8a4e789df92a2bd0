//! The check of paths that documents and comments name: each must exist.
//!
//! ```text
//! `crates/*`, `tools/*`     a file or a folder of this tree; `{a,b}` stands for two, what has a `*` for any
//! `*/file.rs`               the end of the path of a file of this tree
//! ```
//!
//! Only text in backticks is checked, in documents (`*.md`) and in comment lines of Rust.
//! CHANGELOG.md is left out, as it describes the past.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::error::Error;

/// Where files are that may be named.
const ROOTS: [&str; 5] = ["crates", "tools", "docs", "fuzz", "deploy"];
/// Of which a document names whole paths.
const WHOLE: [&str; 2] = ["crates/", "tools/"];

/// All files, and what may be said of them.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Files and folders, from the root of the tree.
    whole: BTreeSet<String>,
    /// The ends of the paths of files, from each of their folders on.
    ends: BTreeSet<String>,
}

impl Named {
    /// Takes in a file, and the folders that it is in.
    pub(crate) fn add(&mut self, path: &str) {
        let slashes = path.match_indices('/').map(|(at, _)| at);
        for at in slashes {
            self.whole.insert(path[..at].to_owned());
            self.ends.insert(path[at + 1..].to_owned());
        }
        self.whole.insert(path.to_owned());
    }

    /// What a text names that is not there, with its lines.
    pub(crate) fn missing_in(&self, text: &str, is_rust: bool) -> Vec<(usize, String)> {
        let mut missing = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if is_rust && !line.trim_start().starts_with("//") {
                continue;
            }
            let quoted = line.split('`').skip(1).step_by(2);
            let paths = quoted.filter(|it| is_path(it)).flat_map(spelled_out);
            let wrong = paths.filter(|path| !self.has(path));
            missing.extend(wrong.map(|path| (number, path)));
        }
        missing
    }

    /// Whether it is there, or is no path of this tree.
    fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let is_whole = WHOLE.iter().any(|root| path.starts_with(root));
        match is_whole {
            _ if path.contains('*') => true,
            true => self.whole.contains(path),
            false => {
                !path.ends_with(".rs") || self.whole.contains(path) || self.ends.contains(path)
            }
        }
    }
}

fn is_path(words: &str) -> bool {
    let is_of_path = |it: char| it.is_ascii_alphanumeric() || "_-./{},*".contains(it);
    words.contains('/') && words.chars().all(is_of_path)
}

/// `a/{b,c}` as `a/b` and `a/c`.
fn spelled_out(path: &str) -> Vec<String> {
    let parts = path
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (choices, behind))) = parts else {
        return vec![path.to_owned()];
    };
    let each = choices.split(',').map(|it| format!("{before}{it}{behind}"));
    each.flat_map(|path| spelled_out(&path)).collect()
}

/// What the documents and comments below `directory` name that is not there.
pub(crate) fn faults(directory: &Path) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    for root in ROOTS {
        collect(directory, root, &mut files)?;
    }
    let mut named = Named::default();
    files.iter().for_each(|path| named.add(path));
    let at_root = fs::read_dir(directory).map_err(Error::at(directory))?;
    for entry in at_root {
        let name = entry.map_err(Error::at(directory))?.file_name();
        files.extend(name.to_str().map(str::to_owned));
    }
    let mut faults = Vec::new();
    for path in files {
        let is_rust = path.ends_with(".rs");
        if !is_rust && !path.ends_with(".md") || path == "CHANGELOG.md" {
            continue;
        }
        let text = fs::read_to_string(directory.join(&path));
        let text = text.map_err(Error::at(&directory.join(&path)))?;
        let missing = named.missing_in(&text, is_rust).into_iter();
        faults.extend(missing.map(|(line, name)| format!("{path}:{line}: there is no {name}")));
    }
    Ok(faults)
}

/// The files below a folder, by their paths from `directory`.
fn collect(directory: &Path, folder: &str, files: &mut Vec<String>) -> Result<(), Error> {
    let here = directory.join(folder);
    if !here.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&here).map_err(Error::at(&here))? {
        let entry = entry.map_err(Error::at(&here))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|it| *it != "target") else {
            continue;
        };
        let path = format!("{folder}/{name}");
        match entry.file_type().map_err(Error::at(&here))?.is_dir() {
            true => collect(directory, &path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
