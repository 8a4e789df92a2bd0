//! The crates of the workspace: description, files, folders, and dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::arrows::{self, Arrows};
use crate::error::Error;
use crate::source;

/// All crates, by their names.
#[derive(Debug, Default)]
pub(crate) struct House {
    pub(crate) packages: Vec<Package>,
}

/// One crate.
#[derive(Debug, Default)]
pub(crate) struct Package {
    /// The name of its folder.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) files: BTreeSet<PathBuf>,
    /// Folders of its sources, below `src`.
    pub(crate) rooms: BTreeSet<String>,
    /// Crates of this workspace that the code imports.
    pub(crate) imports: BTreeSet<String>,
    /// Crates of this workspace that Cargo.toml says it may import, tests aside.
    pub(crate) dependencies: BTreeSet<String>,
    /// A root each: the library, the programs.
    pub(crate) arrows: Vec<Arrows>,
}

/// What Cargo.toml says of a crate.
#[derive(Debug, Default, PartialEq, Eq)]
struct CargoFile {
    name: String,
    description: String,
    dependencies: BTreeSet<String>,
}

/// Reads the workspace at `directory`.
pub(crate) fn read(directory: &Path) -> Result<House, Error> {
    let folders = folders(directory)?;
    let mut cargo_files = Vec::new();
    for folder in &folders {
        let path = folder.join("Cargo.toml");
        cargo_files.push(cargo_file(
            &std::fs::read_to_string(&path).map_err(Error::at(&path))?,
        ));
    }
    // From a crate's name, as Cargo.toml and as the code write it, to its folder.
    let names: BTreeMap<String, String> = cargo_files
        .iter()
        .zip(&folders)
        .map(|(cargo, folder)| (cargo.name.clone(), file_name(folder)))
        .collect();
    let in_code: BTreeMap<String, &String> = names
        .iter()
        .map(|(name, folder)| (name.replace('-', "_"), folder))
        .collect();
    let mut house = House::default();
    for (folder, cargo) in folders.iter().zip(&cargo_files) {
        let mut package = Package {
            name: file_name(folder),
            description: cargo.description.clone(),
            dependencies: cargo
                .dependencies
                .iter()
                .filter_map(|name| names.get(name).cloned())
                .collect(),
            ..Package::default()
        };
        let sources = folder.join("src");
        for root in roots(&sources)? {
            let tree = source::read(&root, &|path| std::fs::read_to_string(path))?;
            let mut arrows = arrows::of(&tree);
            for name in &arrows.crates {
                if let Some(import) = in_code.get(name).filter(|import| **import != &package.name) {
                    package.imports.insert((*import).clone());
                }
            }
            for file in &mut arrows.files {
                let room = file
                    .parent()
                    .and_then(|room| room.strip_prefix(&sources).ok())
                    .unwrap_or(Path::new(""));
                if room != Path::new("") {
                    package.rooms.insert(room.display().to_string());
                }
                *file = file.strip_prefix(directory).unwrap_or(file).to_owned();
                package.files.insert(file.clone());
            }
            package.arrows.push(arrows);
        }
        house.packages.push(package);
    }
    Ok(house)
}

/// The folders of its crates.
pub(crate) fn folders(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut folders = Vec::new();
    for of in ["crates", "tools"] {
        let of = directory.join(of);
        if !of.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&of).map_err(Error::at(&of))? {
            let folder = entry.map_err(Error::at(&of))?.path();
            if folder.join("Cargo.toml").is_file() {
                folders.push(folder);
            }
        }
    }
    folders.sort();
    Ok(folders)
}

/// Crates that Cargo.toml names and the code does not import.
pub(crate) fn faults(house: &House) -> Vec<String> {
    let mut faults = Vec::new();
    for package in &house.packages {
        for unused in package.dependencies.difference(&package.imports) {
            let name = &package.name;
            faults.push(format!(
                "{name}'s Cargo.toml: {unused} is a dependency, and nothing but tests imports it"
            ));
        }
    }
    faults
}

/// The files at which the compiler begins.
fn roots(sources: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut roots: Vec<PathBuf> = ["lib.rs", "main.rs"]
        .iter()
        .map(|name| sources.join(name))
        .collect();
    let programs = sources.join("bin");
    if programs.is_dir() {
        for entry in std::fs::read_dir(&programs).map_err(Error::at(&programs))? {
            let path = entry.map_err(Error::at(&programs))?.path();
            roots.push(if path.is_dir() {
                path.join("main.rs")
            } else {
                path
            });
        }
    }
    roots.retain(|root| {
        root.is_file() && root.extension().is_some_and(|extension| extension == "rs")
    });
    roots.sort();
    Ok(roots)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The few lines of a Cargo.toml that matter here, as this workspace writes them: one key a line.
fn cargo_file(text: &str) -> CargoFile {
    let mut cargo = CargoFile::default();
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let key = key.split('.').next().unwrap_or_default().trim();
        match (section, key) {
            ("[package]", "name") => cargo.name = value.trim().trim_matches('"').to_owned(),
            ("[package]", "description") => {
                cargo.description = value.trim().trim_matches('"').to_owned()
            }
            ("[dependencies]", _) if !key.starts_with('#') => {
                cargo.dependencies.insert(key.to_owned());
            }
            _ => {}
        }
    }
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependencies_of_tests_do_not_count() {
        let cargo = cargo_file(
            "[package]\nname = \"orrery-a\"\ndescription = \"What it is for\"\n\n[dependencies]\norrery-b.workspace = true\n\
             # orrery-x = 1\norrery-c = { workspace = true }\n\n[dev-dependencies]\norrery-d.workspace = true\n",
        );
        assert_eq!(cargo.name, "orrery-a");
        assert_eq!(cargo.description, "What it is for");
        assert_eq!(
            cargo.dependencies,
            BTreeSet::from(["orrery-b".to_owned(), "orrery-c".to_owned()])
        );
    }

    #[test]
    fn a_dependency_that_nothing_imports_is_a_fault() {
        let package = |dependencies: &[&str], imports: &[&str]| Package {
            name: "a".to_owned(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
            imports: imports.iter().map(|name| (*name).to_owned()).collect(),
            ..Package::default()
        };
        assert_eq!(
            faults(&House {
                packages: vec![package(&["b"], &["b"])]
            }),
            Vec::<String>::new()
        );
        assert_eq!(
            faults(&House {
                packages: vec![package(&["b", "c"], &["b"])]
            })
            .len(),
            1
        );
    }
}
