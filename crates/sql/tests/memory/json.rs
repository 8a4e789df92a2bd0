//! Memory tests of JSON files with long lines, many values, or deep nesting.

use std::io::Write;
use std::path::PathBuf;

use orrery_sql::{FileAccess, Session, SessionOptions};

use crate::common::House;
use crate::{Peak, alone};

const MEMORY_BYTES: usize = 128 << 20;

fn session(house: &House) -> Session {
    house.session_with(SessionOptions {
        files: FileAccess::allowed([]),
        ..SessionOptions::default()
    })
}

/// A file of parts that follow each other.
fn written<'p>(house: &House, name: &str, parts: impl IntoIterator<Item = &'p [u8]>) -> PathBuf {
    let path = house.directory.path().join(name);
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    for part in parts {
        file.write_all(part).unwrap();
    }
    file.flush().unwrap();
    path
}

#[test]
fn a_line_of_json_beyond_the_memory_is_refused() {
    let alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let mebibyte = vec![b'x'; 1 << 20];
    let long = || {
        let text = std::iter::repeat_n(&mebibyte[..], 300);
        std::iter::once(&b"{\"t\": \""[..])
            .chain(text)
            .chain([&b"\"}\n"[..]])
    };
    let short = b"{\"t\": \"a\"}\n".repeat(1_000);
    let at_first = written(&house, "first.json", long());
    let behind = written(
        &house,
        "behind.json",
        std::iter::once(&short[..]).chain(long()),
    );
    // A value has two bytes, and many more when it is decoded.
    let values = b"1,".repeat(1 << 19);
    let wide = std::iter::repeat_n(&values[..], 60);
    let list = std::iter::once(&b"{\"t\": [1]}\n{\"t\": ["[..])
        .chain(wide)
        .chain([&b"1]}\n"[..]]);
    let list = written(&house, "list.json", list);
    let peak = Peak::since(alone);
    for path in [at_first, behind, list] {
        let text = format!("select count(t) from '{}'", path.display());
        let (code, message) = house.refused(&session(&house), &text);
        assert_eq!(code, "53200", "{message}");
        assert!(message.contains("JSON"), "{message}");
    }
    peak.require_at_most(MEMORY_BYTES);
    assert_eq!(house.runtime.memory().operators().reserved(), 0);
}

#[test]
fn long_lines_of_json_are_read_few_at_once() {
    let alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let line = format!("{{\"t\": \"{}\"}}\n", "x".repeat(1 << 20));
    let path = written(
        &house,
        "long.json",
        std::iter::repeat_n(line.as_bytes(), 500),
    );
    let peak = Peak::since(alone);
    let text = format!("select count(*), sum(length(t)) from '{}'", path.display());
    let rows = house.rows(&session(&house), &text);
    assert_eq!(rows, [format!("500 {}", 500_u64 << 20)]);
    peak.require_at_most(MEMORY_BYTES);
    assert_eq!(house.runtime.memory().operators().reserved(), 0);
}

/// The engine would write the value into its error, a call for each level.
#[test]
fn deep_values_of_json_are_refused() {
    let _alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let deep = "[".repeat(1 << 20);
    let end = "]".repeat(1 << 20);
    let rows = b"{\"a\": 1}\n".repeat(1_000);
    let last = format!("{{\"a\": {deep}{end}}}\n");
    let path = written(&house, "deep.json", [&rows[..], last.as_bytes()]);
    let text = format!("select sum(a) from '{}'", path.display());
    let (code, message) = house.refused(&session(&house), &text);
    assert_eq!(code, "54001", "{message}");
}
