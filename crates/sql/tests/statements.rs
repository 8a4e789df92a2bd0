//! Statements and what they come to, from the files in `statements/`.
//!
//! ```text
//! statement TAG             a statement that is done: INSERT 0 2, CREATE TABLE
//! error CODE [PART]         one that fails; the message has that part
//! rows                      a query or a statement that returns rows, and behind ---- what these are
//! ```
//!
//! Each file has a database of its own. A record ends with an empty line; lines that begin with # are comments.

mod common;

use std::fs;
use std::path::Path;

use common::House;

fn run(path: &Path) {
    let house = House::new();
    let session = house.session();
    let text = fs::read_to_string(path).unwrap();
    let mut records = 0;
    for record in text.split("\n\n") {
        let lines: Vec<&str> = record
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        let Some((head, rest)) = lines.split_first() else {
            continue;
        };
        if head.is_empty() && rest.is_empty() {
            continue;
        }
        records += 1;
        let place = format!("{}: {record}", path.display());
        let end = rest.iter().position(|line| *line == "----");
        let statement = rest[..end.unwrap_or(rest.len())].join("\n");
        let done = house.run(&session, &statement);
        if let Some(tag) = head.strip_prefix("statement ") {
            let done = done.unwrap_or_else(|error| panic!("{place}\n{error}"));
            assert_eq!(done.tag.to_string(), tag, "{place}");
        } else if let Some(expected) = head.strip_prefix("error ") {
            let error = done.expect_err(&place);
            let (code, part) = expected.split_once(' ').unwrap_or((expected, ""));
            assert_eq!(error.state.code(), code, "{place}\n{error}");
            assert!(error.to_string().contains(part), "{place}\n{error}");
        } else if *head == "rows" {
            let done = done.unwrap_or_else(|error| panic!("{place}\n{error}"));
            let expected = &rest[end.expect(&place) + 1..];
            assert_eq!(done.lines(), expected, "{place}");
        } else {
            panic!("{place}: no record");
        }
    }
    assert!(records > 0, "{}", path.display());
}

macro_rules! files {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let path = concat!("tests/statements/", stringify!($name), ".slt");
            run(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
        })*

        #[test]
        fn every_file_is_run() {
            let names = [$(stringify!($name)),*];
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements");
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                assert!(names.contains(&name.as_str()), "{name}");
            }
        }
    };
}

files! {
    create_table
    insert
    update_delete
    foreign_keys
    alter_table
    indexes_views_schemas
    conflict
    transactions
    arithmetic
}
