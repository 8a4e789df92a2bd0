//! The drawing of crates and rooms in ARCHITECTURE.md, between two marks.
//!
//! ```text
//! name        what the crate is for
//!             rooms    the folders of its source, without those within them
//!             imports  crates of ours
//! ```
//!
//! A crate stands below all that it imports.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::house::{House, Package};

const START: &str = "<!-- drawn by `make structure-write` -->";
const END: &str = "<!-- end of the drawing -->";
/// Where a line ends, in characters.
const LINE_CHARACTERS_MAX: usize = 110;

/// A message, unless the document shows the crates as they are.
pub(crate) fn check(house: &House, directory: &Path) -> Result<Option<String>, Error> {
    let (path, text) = document(directory)?;
    let (before, drawn, _) = parts(&path, &text)?;
    let true_drawing = draw(house);
    if drawn == true_drawing {
        return Ok(None);
    }
    let differing = drawn
        .lines()
        .zip(true_drawing.lines())
        .position(|(drawn, is)| drawn != is);
    let at = differing.unwrap_or(drawn.lines().count().min(true_drawing.lines().count()));
    let mut message = format!(
        "{}:{}: the drawing is not what the tree is; `make structure-write` draws it anew",
        path.display(),
        before.lines().count() + at + 1
    );
    for (mark, line) in [
        ('-', drawn.lines().nth(at)),
        ('+', true_drawing.lines().nth(at)),
    ] {
        if let Some(line) = line {
            let _ = write!(message, "\n  {mark} {line}");
        }
    }
    Ok(Some(message))
}

/// Draws the crates into the document; there is nothing left to say then.
pub(crate) fn write(house: &House, directory: &Path) -> Result<Option<String>, Error> {
    let (path, text) = document(directory)?;
    let (before, _, after) = parts(&path, &text)?;
    std::fs::write(&path, format!("{before}{}{after}", draw(house))).map_err(Error::at(&path))?;
    Ok(None)
}

fn document(directory: &Path) -> Result<(PathBuf, String), Error> {
    let path = directory.join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).map_err(Error::at(&path))?;
    Ok((path, text))
}

/// What stands before the drawing, the drawing with its fence, and what follows.
fn parts<'a>(path: &Path, text: &'a str) -> Result<(&'a str, &'a str, &'a str), Error> {
    let none = || Error::NoDrawing {
        path: path.to_owned(),
        start: START,
        end: END,
    };
    let start = text.find(START).ok_or_else(none)? + START.len() + 1;
    let end = start
        + text
            .get(start..)
            .and_then(|rest| rest.find(END))
            .ok_or_else(none)?;
    Ok((&text[..start], &text[start..end], &text[end..]))
}

fn draw(house: &House) -> String {
    let floors = floors(house);
    let mut packages: Vec<&Package> = house.packages.iter().collect();
    packages.sort_by_key(|package| (floors.get(package.name.as_str()), &package.name));
    let width = packages
        .iter()
        .map(|package| package.name.len())
        .max()
        .unwrap_or(0)
        + 2;
    let mut drawing = String::from("```text\n");
    for package in &packages {
        let _ = writeln!(drawing, "{:width$}{}", package.name, package.description);
        // Rooms within rooms are seen where they are.
        let rooms = package.rooms.iter().map(String::as_str);
        let rooms: Vec<&str> = rooms.filter(|room| !room.contains('/')).collect();
        let mut imports: Vec<&str> = package.imports.iter().map(String::as_str).collect();
        imports.sort_by_key(|import| (floors.get(import), *import));
        list(&mut drawing, width, "rooms", &rooms);
        list(&mut drawing, width, "imports", &imports);
    }
    drawing.push_str("```\n");
    drawing
}

fn list(drawing: &mut String, indent: usize, title: &str, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let mut line = format!("{:indent$}{title:9}", "");
    let start = line.len();
    for (at, name) in names.iter().enumerate() {
        let comma = if at + 1 < names.len() { "," } else { "" };
        if line.len() + 1 + name.len() > LINE_CHARACTERS_MAX {
            drawing.push_str(line.trim_end());
            drawing.push('\n');
            line = " ".repeat(start);
        }
        let _ = write!(line, "{name}{comma} ");
    }
    drawing.push_str(line.trim_end());
    drawing.push('\n');
}

/// How many crates stand above each, at most: 0 imports none of ours.
fn floors(house: &House) -> BTreeMap<&str, usize> {
    let mut floors: BTreeMap<&str, usize> = house
        .packages
        .iter()
        .map(|package| (package.name.as_str(), 0))
        .collect();
    // Each round raises what is too low; a knot of crates, which is told elsewhere, must not raise
    // for ever.
    for _ in 0..house.packages.len() {
        for package in &house.packages {
            let above = package
                .imports
                .iter()
                .filter_map(|import| floors.get(import.as_str()));
            let floor = above.max().map_or(0, |floor| floor + 1);
            floors.insert(&package.name, floor);
        }
    }
    floors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, rooms: &[&str], imports: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            description: format!("What {name} is for"),
            rooms: rooms.iter().map(|room| (*room).to_owned()).collect(),
            imports: imports.iter().map(|import| (*import).to_owned()).collect(),
            ..Package::default()
        }
    }

    fn house() -> House {
        House {
            packages: vec![
                package("above", &["one", "one/within", "two"], &["below"]),
                package("below", &[], &[]),
            ],
        }
    }

    #[test]
    fn a_crate_stands_below_what_it_imports() {
        let drawn = "```text\nbelow  What below is for\nabove  What above is for\n       rooms    one, two\n       imports  below\n```\n";
        assert_eq!(draw(&house()), drawn);
    }

    #[test]
    fn a_drawing_that_is_not_true_is_told_by_its_line() {
        let folder = std::env::temp_dir().join(format!("structure-drawing-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let document = folder.join("ARCHITECTURE.md");
        std::fs::write(
            &document,
            format!("# Title\n\n{START}\n```text\nold\n```\n{END}\nrest\n"),
        )
        .expect("written");
        let message = check(&house(), &folder).expect("read").expect("not true");
        assert!(
            message.contains("ARCHITECTURE.md:5:")
                && message.contains("- old")
                && message.contains("+ below"),
            "{message}"
        );
        assert_eq!(write(&house(), &folder).expect("written"), None);
        assert_eq!(check(&house(), &folder).expect("read"), None);
        assert!(
            std::fs::read_to_string(&document)
                .expect("read")
                .ends_with(&format!("{END}\nrest\n"))
        );
        std::fs::write(&document, "# Title\n").expect("written");
        assert!(matches!(
            check(&house(), &folder),
            Err(Error::NoDrawing { .. })
        ));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
