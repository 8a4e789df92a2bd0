//! Test programs: how many a crate has, and tests that no program runs.
//!
//! A program costs a link, in most crates one with all of DataFusion. So a crate's integration
//! tests are one program, and another says in its first lines why it is "a program of its own".
//! Libraries without unit tests, or without examples in their documentation, have `test = false`
//! and `doctest = false` in Cargo.toml, which would hide the first test or example that is added.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// What a further test program of a crate has in its first lines.
const REASON: &str = "program of its own";
const REASON_LINES: usize = 10;

/// What is wrong in one crate.
pub(crate) fn faults(folder: &Path) -> Result<Vec<String>, Error> {
    let mut faults = Vec::new();
    let name = folder.display();
    let programs = test_programs(&folder.join("tests"))?;
    let mut without_reason = Vec::new();
    for program in &programs {
        let text = read(program)?;
        let mut first = text.lines().take(REASON_LINES);
        if !first.any(|line| line.contains(REASON)) {
            without_reason.push(program.display().to_string());
        }
    }
    if without_reason.len() > 1 {
        faults.push(format!(
            "{name}: {} are test programs: make them modules of one, or say in the first lines of each but one why it is \"a {REASON}\"",
            without_reason.join(", ")
        ));
    }
    let cargo_file = read(&folder.join("Cargo.toml"))?;
    let hides = |key: &str| is_off(&cargo_file, "[lib]", key);
    let library = sources(&folder.join("src"))?;
    for path in &library {
        let text = read(path)?;
        if hides("test") && text.lines().map(str::trim).any(is_test) {
            faults.push(format!(
                "{}: a test that nothing runs: {name}'s Cargo.toml has `test = false` for the library",
                path.display()
            ));
        }
        if let Some(line) = first_example(&text).filter(|_| hides("doctest")) {
            faults.push(format!(
                "{}:{line}: an example that nothing runs: {name}'s Cargo.toml has `doctest = false`; remove that, or say ```text",
                path.display()
            ));
        }
    }
    Ok(faults)
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(Error::at(path))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::at(folder))? {
        paths.push(entry.map_err(Error::at(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn is_test(line: &str) -> bool {
    line == "#[test]" || line.starts_with("#[tokio::test")
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// The files at which the compiler begins, by Cargo's convention.
fn test_programs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = entries(folder)?.into_iter();
    let roots = entries.map(|path| match path.is_dir() {
        true => path.join("main.rs"),
        false => path,
    });
    Ok(roots
        .filter(|path| path.is_file() && is_source(path))
        .collect())
}

/// All sources below a folder.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            match path.is_dir() {
                true => folders.push(path),
                false if is_source(&path) => found.push(path),
                false => {}
            }
        }
    }
    Ok(found)
}

/// Whether a section of Cargo.toml has `key = false`.
fn is_off(cargo_file: &str, section: &str, key: &str) -> bool {
    let lines = cargo_file.lines().map(str::trim);
    let within = lines.skip_while(|line| *line != section).skip(1);
    let mut within = within.take_while(|line| !line.starts_with('['));
    within.any(|line| {
        let pair = line.split_once('=');
        pair.is_some_and(|(name, value)| (name.trim(), value.trim()) == (key, "false"))
    })
}

/// The line of the first block of code in documentation that rustdoc would compile.
fn first_example(text: &str) -> Option<usize> {
    let mut is_within = false;
    for (at, line) in text.lines().map(str::trim).enumerate() {
        let documentation = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let Some(fence) = documentation.and_then(|text| text.trim().strip_prefix("```")) else {
            is_within = is_within && documentation.is_some();
            continue;
        };
        let language = fence.split([',', ' ']).next().unwrap_or_default();
        let of_rust = ["", "rust", "should_panic", "no_run", "compile_fail"];
        if !is_within && of_rust.contains(&language) {
            return Some(at + 1);
        }
        is_within = !is_within;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_in_its_section_alone() {
        let text = "[lib]\nbench = false\ndoctest = false\n\n[[bin]]\nname = \"a\"\ntest = false\n";
        assert!(is_off(text, "[lib]", "doctest"));
        assert!(!is_off(text, "[lib]", "test"));
        assert!(!is_off("[package]\nname = \"a\"\n", "[lib]", "test"));
    }

    #[test]
    fn an_example_is_a_block_without_another_language() {
        assert_eq!(
            first_example("/// ```text\n/// a\n/// ```\nfn a() {}\n"),
            None
        );
        assert_eq!(first_example("//! ```\n//! a();\n//! ```\n"), Some(1));
        assert_eq!(
            first_example("/// A.\n/// ```compile_fail,E0624\n"),
            Some(2)
        );
        // What is behind a block that was not closed is not in it.
        assert_eq!(first_example("/// ```text\nfn a() {}\n/// ```\n"), Some(3));
    }

    #[test]
    fn a_second_test_program_wants_a_reason() {
        let folder =
            std::env::temp_dir().join(format!("structure-programs-{}", std::process::id()));
        let tests = folder.join("tests");
        std::fs::create_dir_all(&tests).expect("a folder");
        let write = |path: &Path, text: &str| std::fs::write(path, text).expect("a file");
        write(&folder.join("Cargo.toml"), "[lib]\ntest = false\n");
        write(&tests.join("a.rs"), "//! A.\n");
        write(
            &tests.join("b.rs"),
            "//! B. A program of its own: it counts.\n",
        );
        assert_eq!(faults(&folder).expect("a crate"), Vec::<String>::new());
        write(&tests.join("c.rs"), "//! C.\n");
        std::fs::create_dir_all(folder.join("src")).expect("a folder");
        write(&folder.join("src/lib.rs"), "#[test]\nfn a() {}\n");
        let found = faults(&folder).expect("a crate");
        std::fs::remove_dir_all(&folder).expect("the folder");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("c.rs") && !found[0].contains("b.rs"),
            "{found:?}"
        );
        assert!(found[1].contains("nothing runs"), "{found:?}");
    }
}
