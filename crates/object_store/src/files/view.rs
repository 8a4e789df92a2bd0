//! The view of files: those of the catalog, overlaid with uncommitted writes and removals.
//!
//! What is laid over lives as long as a writer's turn. A file passes through it like this:
//!
//! ```text
//! create            Staged      a local file
//! sync              Uploaded    an object that no catalog names
//! MANIFEST renamed  -           the catalog names it, if the storage's manifest names its directory
//! remove            Removed     hidden; the next catalog that does not name it has it as garbage
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use orrery_storage::log::LOG_DIRECTORY;
use orrery_storage::{Error, ManifestNames};

use crate::coordination::catalog::{Catalog, FileRef, Garbage, Known};

/// A path's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A local file so far.
    Staged(PathBuf),
    /// An object.
    File(FileRef),
    /// A log, by the name of its objects.
    Log(String),
}

/// What is laid over the catalog.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) known: Option<Known>,
    /// By path below the root; `None` is a file that was removed.
    over: BTreeMap<String, Option<Entry>>,
    directories: BTreeSet<String>,
    /// Objects that no catalog has named, and none will.
    given_up: BTreeSet<String>,
}

impl View {
    fn catalog(&self) -> Option<&Catalog> {
        self.known.as_ref().map(|known| &*known.catalog)
    }

    fn of_catalog(&self, path: &str) -> Option<Entry> {
        let catalog = self.catalog()?;
        let file = catalog.files.get(path).cloned().map(Entry::File);
        file.or_else(|| catalog.logs.get(path).cloned().map(Entry::Log))
    }

    /// What stands at a path.
    pub(crate) fn entry(&self, path: &str) -> Option<Entry> {
        match self.over.get(path) {
            Some(over) => over.clone(),
            None => self.of_catalog(path),
        }
    }

    /// All paths with what stands there.
    fn entries(&self) -> BTreeMap<String, Entry> {
        let mut all = BTreeMap::new();
        if let Some(catalog) = self.catalog() {
            let files = catalog.files.iter();
            all.extend(files.map(|(path, file)| (path.clone(), Entry::File(file.clone()))));
            let logs = catalog.logs.iter();
            all.extend(logs.map(|(path, id)| (path.clone(), Entry::Log(id.clone()))));
        }
        for (path, over) in &self.over {
            match over {
                Some(entry) => all.insert(path.clone(), entry.clone()),
                None => all.remove(path),
            };
        }
        all
    }

    /// Names of all logs.
    pub(crate) fn logs(&self) -> BTreeSet<String> {
        let logs = self
            .entries()
            .into_values()
            .filter_map(|entry| match entry {
                Entry::Log(id) => Some(id),
                Entry::Staged(_) | Entry::File(_) => None,
            });
        logs.collect()
    }

    /// Puts an entry at a path; gives the local file that stood there.
    pub(crate) fn put(&mut self, path: &str, entry: Entry) -> Option<PathBuf> {
        let before = self.over.insert(path.to_owned(), Some(entry));
        before.flatten().and_then(|before| self.give_up(before))
    }

    /// The staged file at a path is an object now. False if it is not there any more: then the
    /// object is given up.
    pub(crate) fn uploaded(&mut self, path: &str, staged: &Path, file: FileRef) -> bool {
        match self.over.get_mut(path) {
            Some(Some(entry)) if *entry == Entry::Staged(staged.to_path_buf()) => {
                *entry = Entry::File(file);
                true
            }
            _ => {
                self.given_up.insert(file.key);
                false
            }
        }
    }

    /// Removes a file; false if there is none. Gives the local file that it was.
    pub(crate) fn remove(&mut self, path: &str) -> (bool, Option<PathBuf>) {
        if self.entry(path).is_none() {
            return (false, None);
        }
        let before = match self.of_catalog(path) {
            Some(_) => self.over.insert(path.to_owned(), None),
            None => self.over.remove(path),
        };
        (
            true,
            before.flatten().and_then(|before| self.give_up(before)),
        )
    }

    fn give_up(&mut self, entry: Entry) -> Option<PathBuf> {
        match entry {
            Entry::Staged(path) => return Some(path),
            Entry::File(file) => self.given_up.insert(file.key),
            Entry::Log(id) => self.given_up.insert(log_folder(&id)),
        };
        None
    }

    /// Removes all below a directory; false if it is not there. Gives the local files.
    pub(crate) fn remove_directory(&mut self, directory: &str) -> (bool, Vec<PathBuf>) {
        let below = format!("{directory}/");
        let mut found = self.directories.remove(directory);
        self.directories.retain(|known| !known.starts_with(&below));
        let mut staged = Vec::new();
        for path in self.paths_below(&below) {
            found = true;
            staged.extend(self.remove(&path).1);
        }
        (found, staged)
    }

    /// Moves a file, or all below a directory; false if there is neither. Gives local files that
    /// were replaced.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> (bool, Vec<PathBuf>) {
        let below = format!("{from}/");
        let mut moved = self.paths_below(&below);
        if self.entry(from).is_some() {
            moved.push(from.to_owned());
        }
        let mut replaced = Vec::new();
        for path in &moved {
            let Some(entry) = self.entry(path) else {
                continue;
            };
            match self.of_catalog(path) {
                Some(_) => self.over.insert(path.clone(), None),
                None => self.over.remove(path),
            };
            let target = format!("{to}{}", &path[from.len()..]);
            replaced.extend(self.put(&target, entry));
        }
        let directories: Vec<String> = (self.directories.iter())
            .filter(|known| *known == from || known.starts_with(&below))
            .cloned()
            .collect();
        for directory in &directories {
            self.directories.remove(directory);
            self.directories
                .insert(format!("{to}{}", &directory[from.len()..]));
        }
        (!moved.is_empty() || !directories.is_empty(), replaced)
    }

    fn paths_below(&self, below: &str) -> Vec<String> {
        let all = self.entries().into_keys();
        all.filter(|path| path.starts_with(below)).collect()
    }

    /// Makes a directory with its parents.
    pub(crate) fn create_directory(&mut self, directory: &str) {
        for (end, _) in directory.match_indices('/') {
            self.directories.insert(directory[..end].to_owned());
        }
        self.directories.insert(directory.to_owned());
    }

    /// Whether there is a directory.
    pub(crate) fn is_directory(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.directories.contains(path)
            || self.entries().keys().any(|known| known.starts_with(&below))
    }

    /// Names in a directory; the root's is empty.
    pub(crate) fn names(&self, directory: &str) -> BTreeSet<String> {
        let below = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        let all = self.entries();
        let known = all.keys().chain(&self.directories);
        let inside = known.filter_map(|path| path.strip_prefix(&below));
        let names = inside.filter_map(|rest| rest.split('/').next());
        let names = names.filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    }

    /// The catalog after `before` that a manifest of the storage makes, which names some of what is
    /// there.
    pub(crate) fn next_catalog(
        &self,
        before: &Catalog,
        manifest: String,
        names: &ManifestNames,
        dropped_us: i64,
    ) -> Result<Catalog, Error> {
        let mut next = before.next();
        next.manifest = Some(manifest);
        next.files.clear();
        next.logs.clear();
        for (path, entry) in self.entries() {
            let (first, rest) = path.split_once('/').unwrap_or((&path, ""));
            let is_named = names.directories.contains(first)
                || (first == LOG_DIRECTORY && names.logs.contains(rest));
            match entry {
                _ if !is_named => {}
                Entry::File(file) => {
                    next.files.insert(path, file);
                }
                Entry::Log(id) => {
                    next.logs.insert(path, id);
                }
                Entry::Staged(_) => {
                    let what = "the manifest names its directory, and it was never synced";
                    return Err(Error::invalid_input(path.as_ref(), what));
                }
            }
        }
        let kept: BTreeSet<&str> = next.files.values().map(|file| file.key.as_str()).collect();
        let dropped_files = before.files.values().map(|file| file.key.clone());
        let dropped_files = dropped_files.filter(|key| !kept.contains(key.as_str()));
        let kept_logs: BTreeSet<&String> = next.logs.values().collect();
        let dropped_logs = before.logs.values().filter(|id| !kept_logs.contains(id));
        let dropped: BTreeSet<String> = dropped_files
            .chain(dropped_logs.map(|id| log_folder(id)))
            .chain(self.given_up.iter().cloned())
            .collect();
        let sequence = next.sequence;
        next.garbage.extend(dropped.into_iter().map(|name| Garbage {
            name,
            dropped_us,
            sequence,
        }));
        Ok(next)
    }

    /// Takes a catalog that was put from this view, perhaps some changes ago.
    pub(crate) fn published(&mut self, known: Known) {
        let catalog = &known.catalog;
        self.over.retain(|path, over| match over {
            Some(Entry::File(file)) => catalog.files.get(path) != Some(file),
            Some(Entry::Log(id)) => catalog.logs.get(path) != Some(id),
            Some(Entry::Staged(_)) => true,
            None => catalog.files.contains_key(path) || catalog.logs.contains_key(path),
        });
        let garbage: BTreeSet<&str> = (catalog.garbage.iter())
            .map(|garbage| garbage.name.as_str())
            .collect();
        self.given_up
            .retain(|name| !garbage.contains(name.as_str()));
        self.known = Some(known);
    }

    /// The turn has ended: what no catalog names is gone. Gives the local files.
    pub(crate) fn end_turn(&mut self) -> Vec<PathBuf> {
        self.directories.clear();
        self.given_up.clear();
        let over = std::mem::take(&mut self.over);
        let staged = over.into_values().filter_map(|over| match over {
            Some(Entry::Staged(path)) => Some(path),
            _ => None,
        });
        staged.collect()
    }
}

/// The folder with the objects of a log.
pub(crate) fn log_folder(id: &str) -> String {
    format!("log/{id}/")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn file(key: &str) -> FileRef {
        FileRef {
            key: key.to_owned(),
            bytes: 1,
        }
    }

    fn names(directories: &[&str], logs: &[&str]) -> ManifestNames {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        ManifestNames {
            directories: owned(directories),
            logs: owned(logs),
        }
    }

    /// Puts the next catalog in place.
    fn publish(view: &mut View, names: &ManifestNames) {
        let before = Arc::clone(&view.known.as_ref().unwrap().catalog);
        let next = view.next_catalog(&before, String::new(), names, 7).unwrap();
        view.published(Known {
            catalog: Arc::new(next),
            e_tag: String::new(),
        });
    }

    fn garbage(view: &View) -> Vec<&str> {
        let garbage = &view.catalog().unwrap().garbage;
        garbage.iter().map(|one| one.name.as_str()).collect()
    }

    fn view() -> View {
        View {
            known: Some(Known {
                catalog: Arc::new(Catalog::of_turn(None, "writer")),
                e_tag: String::new(),
            }),
            ..View::default()
        }
    }

    #[test]
    fn a_catalog_names_what_the_manifest_needs_and_the_rest_waits_or_is_garbage() {
        let mut view = view();
        view.put("segment-1/a", Entry::File(file("a")));
        view.put("segment-1/b", Entry::File(file("b")));
        view.put("delta-2/c", Entry::File(file("c")));
        view.put("log/1.log", Entry::Log("l".to_owned()));
        publish(&mut view, &names(&["segment-1"], &["1.log"]));
        assert_eq!(view.catalog().unwrap().files.len(), 2);
        assert_eq!(view.entry("delta-2/c"), Some(Entry::File(file("c"))));
        assert!(garbage(&view).is_empty());

        view.remove("segment-1/b");
        assert_eq!(view.entry("segment-1/b"), None);
        assert_eq!(view.remove_directory("delta-2"), (true, vec![]));
        publish(&mut view, &names(&["segment-1"], &[]));
        assert_eq!(garbage(&view), ["b", "c", "log/l/"]);
        publish(&mut view, &names(&["segment-1"], &[]));
        assert_eq!(garbage(&view), ["b", "c", "log/l/"]);
        assert_eq!(view.entry("segment-1/a"), Some(Entry::File(file("a"))));
        assert_eq!(view.entry("log/1.log"), None);
    }

    #[test]
    fn what_was_never_synced_is_not_published_and_goes_with_the_turn() {
        let mut view = view();
        let staged = PathBuf::from("/cache/staging/1");
        view.put("segment-1/a", Entry::Staged(staged.clone()));
        let before = Arc::clone(&view.known.as_ref().unwrap().catalog);
        let all = names(&["segment-1"], &[]);
        assert!(view.next_catalog(&before, String::new(), &all, 7).is_err());
        assert!(view.uploaded("segment-1/a", &staged, file("a")));
        assert!(view.next_catalog(&before, String::new(), &all, 7).is_ok());
        // One that was replaced meanwhile is not what was sent.
        view.put("segment-1/a", Entry::Staged("/cache/staging/2".into()));
        assert!(!view.uploaded("segment-1/a", &staged, file("b")));
        assert_eq!(view.end_turn(), [PathBuf::from("/cache/staging/2")]);
        assert_eq!(view.entry("segment-1/a"), None);
    }

    #[test]
    fn directories_are_listed_moved_and_removed() {
        let mut view = view();
        view.put("a/x/1", Entry::File(file("1")));
        view.put("a/2", Entry::File(file("2")));
        view.create_directory("empty/inside");
        let names = |view: &View, of: &str| view.names(of).into_iter().collect::<Vec<_>>();
        assert_eq!(names(&view, ""), ["a", "empty"]);
        assert_eq!(names(&view, "a"), ["2", "x"]);
        assert!(view.is_directory("a/x") && view.is_directory("empty"));
        assert!(!view.is_directory("a/2") && !view.is_directory("a/"));
        assert!(view.rename("a", "b").0);
        assert!(!view.is_directory("a"));
        assert_eq!(view.entry("b/x/1"), Some(Entry::File(file("1"))));
        assert!(!view.rename("a", "c").0);
        assert!(view.remove_directory("b").0);
        assert!(!view.remove_directory("b").0);
        assert_eq!(names(&view, ""), ["empty"]);
    }
}
