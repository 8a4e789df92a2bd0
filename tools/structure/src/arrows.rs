//! The import graph of one crate root: which file uses which names of which file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::resolve::Target;
use crate::source::{FileId, SourceTree};

/// The files of a root, and what they take from each other.
#[derive(Debug, Default)]
pub(crate) struct Arrows {
    pub(crate) files: Vec<PathBuf>,
    /// From file to file: the names taken.
    pub(crate) names: BTreeMap<(FileId, FileId), BTreeSet<String>>,
    /// First words of paths that lead out of the crate.
    pub(crate) crates: BTreeSet<String>,
}

/// The arrows of a root. A re-export is none, nor is `mod name;`: only a file that uses a name
/// takes it.
pub(crate) fn of(tree: &SourceTree) -> Arrows {
    let mut arrows = Arrows {
        files: tree.files.clone(),
        ..Arrows::default()
    };
    for (id, module) in tree.modules.iter().enumerate() {
        for import in &module.imports {
            for target in tree.resolve(id, &import.path) {
                match target {
                    Target::Item(file, name) if !import.is_handed_on => {
                        arrows.add(module.file, file, name)
                    }
                    Target::Crate(name) => {
                        arrows.crates.insert(name);
                    }
                    Target::Item(..) | Target::Module(_) => {}
                }
            }
        }
        for path in &module.paths {
            if let ([name], true) = (path.segments.as_slice(), path.is_macro) {
                if let Some(file) = tree.macros.get(name) {
                    arrows.add(module.file, *file, format!("{name}!"));
                }
                continue;
            }
            for target in tree.resolve(id, &path.segments) {
                match target {
                    Target::Item(file, name) => arrows.add(module.file, file, name),
                    Target::Crate(name) => {
                        arrows.crates.insert(name);
                    }
                    Target::Module(_) => {}
                }
            }
        }
    }
    arrows
}

impl Arrows {
    fn add(&mut self, from: FileId, to: FileId, name: String) {
        if from != to {
            self.names.entry((from, to)).or_default().insert(name);
        }
    }
}
