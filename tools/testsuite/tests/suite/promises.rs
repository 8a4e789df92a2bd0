//! Tests of `promises/`: every part has a section, every promise an answer, every named test
//! exists.
//!
//! ```text
//! promises/README.md              -> the promises
//! promises/{routes,nodes,...}.md  -> sections: parts, and for each promise tests or a reason
//! sources of the tree             -> the parts that there are, and the tests that there are
//! ```
//!
//! Routes and SQL functions are read from their tables, and of the sources the text:
//! `impl ExecutionPlan for`, `impl DerivedIndex for`, kinds of components. So a part that is added
//! without a section fails here.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The promises, as `promises/README.md` lists them.
const PROMISES: usize = 19;

fn testsuite() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All sources below `crates/` and `tools/`, with their paths from there.
fn sources() -> Vec<(PathBuf, String)> {
    let tree = testsuite().ancestors().nth(2).unwrap();
    let rooms = ["crates", "tools"].map(|name| tree.join(name));
    let mut found = Vec::new();
    let mut directories = rooms.to_vec();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let mut within = rooms.iter().filter_map(|room| path.strip_prefix(room).ok());
                let within = within.next().unwrap().to_path_buf();
                found.push((within, text));
            }
        }
    }
    found.sort();
    found
}

/// Sources of programs, not of tests.
fn is_program(path: &Path) -> bool {
    let mut parts = path.iter().skip(1);
    parts.next().is_some_and(|part| part == "src")
        && !path.iter().any(|part| {
            part.to_string_lossy()
                .trim_end_matches(".rs")
                .ends_with("tests")
        })
}

/// Names of all functions that an attribute makes a test.
fn tests(sources: &[(PathBuf, String)]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, text) in sources {
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(at) = line.find("fn ").filter(|_| is_test) {
                names.insert(word(&line[at + 3..]).to_owned());
                is_test = false;
            } else if line.starts_with('}') {
                is_test = false;
            }
        }
    }
    names
}

/// What the text begins with, as far as it is a name.
fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &text[..end.unwrap_or(text.len())]
}

/// What one section says.
#[derive(Debug, Default, Clone)]
struct Section {
    parts: Vec<String>,
    family: Option<String>,
    cells: BTreeMap<String, String>,
}

/// The texts between backticks.
fn quoted(text: &str) -> Vec<String> {
    let pieces = text.split('`');
    pieces.skip(1).step_by(2).map(str::to_owned).collect()
}

/// The cells of the tables of a text, promise by promise.
fn row(line: &str) -> Option<(String, String)> {
    let (promise, cell) = line.strip_prefix('|')?.split_once('|')?;
    let (promise, cell) = (promise.trim(), cell.trim().trim_end_matches('|').trim());
    (promise != "promise" && !promise.starts_with("---"))
        .then(|| (promise.to_owned(), cell.to_owned()))
}

/// Kinds of SQL functions, as lines of `functions.md` that list them begin.
const KINDS: [&str; 4] = ["Scalar", "Aggregate", "Window", "Table"];

fn is_list(line: &str) -> bool {
    KINDS.iter().any(|kind| line.starts_with(kind))
}

/// A function by its kind: some names are of two.
fn named(kind: &str, function: &str) -> String {
    format!("{}/{function}", kind.to_lowercase())
}

/// The sections of one file, each with what its family says where it says nothing itself.
fn sections(name: &str) -> Vec<Section> {
    let path = testsuite().join("promises").join(name);
    let text = fs::read_to_string(path).unwrap();
    let mut families: BTreeMap<String, Section> = BTreeMap::new();
    let mut parts: Vec<Section> = Vec::new();
    let mut family_open: Option<String> = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("## Family ") {
            family_open = Some(name.trim().to_owned());
            families.insert(name.trim().to_owned(), Section::default());
        } else if let Some(heading) = line.strip_prefix("## ") {
            family_open = None;
            let family = heading.trim().strip_suffix(')');
            let family = family.and_then(|heading| Some(heading.rsplit_once(" (")?.1));
            parts.push(Section {
                parts: quoted(heading),
                family: family.map(str::to_owned),
                cells: BTreeMap::new(),
            });
        } else if let Some((kind, names)) = line.split_once("s: `").filter(|_| is_list(line)) {
            let names = quoted(&format!("`{names}"));
            let names = names.iter().map(|name| named(kind, name));
            parts.last_mut().unwrap().parts.extend(names);
        } else if let Some((promise, cell)) = row(line) {
            let section = match &family_open {
                Some(family) => families.get_mut(family).unwrap(),
                None => parts.last_mut().unwrap(),
            };
            let twice = section.cells.insert(promise.clone(), cell);
            assert!(
                twice.is_none(),
                "{name}: {promise} stands twice in {section:?}"
            );
        }
    }
    for part in &mut parts {
        let Some(family) = &part.family else { continue };
        let family = families.get(family);
        let family = family.unwrap_or_else(|| panic!("{name}: no family {:?}", part.family));
        for (promise, cell) in &family.cells {
            part.cells
                .entry(promise.clone())
                .or_insert_with(|| cell.clone());
        }
    }
    parts
}

/// The promises themselves.
fn promises() -> BTreeSet<String> {
    let text = fs::read_to_string(testsuite().join("promises/README.md")).unwrap();
    let found: BTreeSet<String> = text.lines().filter_map(row).map(|(name, _)| name).collect();
    assert_eq!(found.len(), PROMISES, "{found:?}");
    found
}

/// Holds one file of sections against the parts that there are.
fn check(name: &str, there: &BTreeSet<String>) {
    assert!(
        !there.is_empty(),
        "{name}: no part was found in the sources"
    );
    let (promises, known) = (promises(), tests(&sources()));
    let mut wrong = Vec::new();
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    let mut open = 0;
    for section in sections(name) {
        for part in &section.parts {
            *answered.entry(part.clone()).or_default() += 1;
            if !there.contains(part) {
                wrong.push(format!("`{part}` has a section and is not in the code"));
            }
        }
        for promise in &promises {
            match section.cells.get(promise) {
                None => wrong.push(format!("{:?} says nothing of {promise}", section.parts)),
                Some(cell) if cell.is_empty() => {
                    wrong.push(format!("{:?} says nothing of {promise}", section.parts));
                }
                Some(cell) => {
                    open += usize::from(cell.starts_with("open:"));
                    for test in quoted(cell).iter().filter(|test| !known.contains(*test)) {
                        wrong.push(format!("{:?}, {promise}: no test `{test}`", section.parts));
                    }
                }
            }
        }
        for promise in section
            .cells
            .keys()
            .filter(|name| !promises.contains(*name))
        {
            wrong.push(format!("{:?}: {promise} is no promise", section.parts));
        }
    }
    for part in there {
        match answered.get(part) {
            None => wrong.push(format!(
                "`{part}` has no section in tools/testsuite/promises/{name}: say there what shows each promise"
            )),
            Some(1) => {}
            Some(times) => wrong.push(format!("`{part}` has {times} sections")),
        }
    }
    println!("{name}: {} parts, {open} cells open", there.len());
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

/// `crate/Type` of each `impl TRAIT for Type` in the programs.
fn implementors(of: &str) -> BTreeSet<String> {
    let start = format!("impl {of} for ");
    let mut found = BTreeSet::new();
    for (path, text) in sources().iter().filter(|(path, _)| is_program(path)) {
        let house = path.iter().next().unwrap().to_string_lossy();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix(&start) {
                found.insert(format!("{house}/{}", word(rest)));
            }
        }
    }
    found
}

#[test]
fn each_route_answers_for_each_promise() {
    let rows = orrery_http::route_rows().into_iter().flatten();
    let routes = rows
        .flat_map(|row| row.paths)
        .map(|path| (*path).to_owned());
    let routes = routes.collect();
    check("routes.md", &routes);
}

#[test]
fn each_plan_node_answers_for_each_promise() {
    check("nodes.md", &implementors("ExecutionPlan"));
}

#[test]
fn each_derived_index_answers_for_each_promise() {
    let mut indices = implementors("DerivedIndex");
    let sources = sources();
    let components = Path::new("storage/src/files/components.rs");
    let (_, text) = sources.iter().find(|(path, _)| path == components).unwrap();
    // The kinds are the private constants; names of files are for all.
    for line in text.lines() {
        let kind = line
            .strip_prefix("const ")
            .and_then(|rest| rest.split_once(": &str = \""));
        if let Some((_, kind)) = kind.filter(|(name, _)| !name.contains("SUFFIX")) {
            indices.insert(kind.trim_end_matches("\";").to_owned());
        }
    }
    check("indices.md", &indices);
}

#[test]
fn each_sql_function_answers_for_each_promise() {
    let offered = orrery_sql::offered_functions();
    let lists = [
        offered.scalars,
        offered.aggregates,
        offered.windows,
        offered.tables,
    ];
    let functions = KINDS.iter().zip(lists).flat_map(|(kind, names)| {
        let names = names.into_iter();
        names.map(move |name| named(kind, name))
    });
    check("functions.md", &functions.collect());
}
