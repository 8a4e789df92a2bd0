//! Memory tests of small Parquet files that expand.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
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

/// Rows in one row group, in which a text stands that begins with the row's number.
fn written(
    house: &House,
    name: &str,
    rows: i32,
    text_bytes: usize,
    has_dictionary: bool,
) -> PathBuf {
    let path = house.directory.path().join(name);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap()))
        .set_dictionary_enabled(has_dictionary)
        .set_dictionary_page_size_limit(1 << 30)
        .set_max_row_group_row_count(Some(1 << 30))
        .build();
    let batch = |from: i32, to: i32| {
        let texts = (from..to).map(|row| format!("{row:07}{}", "x".repeat(text_bytes - 7)));
        let columns: [(&str, ArrayRef); 2] = [
            ("i", Arc::new(Int32Array::from_iter_values(from..to))),
            ("t", Arc::new(StringArray::from_iter_values(texts))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch(0, 1).schema(), Some(properties)).unwrap();
    for from in (0..rows).step_by(8) {
        writer.write(&batch(from, rows.min(from + 8))).unwrap();
    }
    writer.close().unwrap();
    path
}

#[test]
fn a_column_chunk_that_becomes_a_gigabyte_is_read_few_rows_at_once() {
    let alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let path = written(&house, "long.parquet", 1_000, 1 << 20, false);
    let peak = Peak::since(alone);
    let path = path.display();
    let text = format!("select count(*), sum(length(t)), max(i) from '{path}' where t like '%x'");
    let rows = house.rows(&session(&house), &text);
    assert_eq!(rows, [format!("1000 {} 999", 1_000_u64 << 20)]);
    peak.require_at_most(MEMORY_BYTES);
    let peak = Peak::since(crate::alone());
    // Sorted by what is short, of which the long ones are a part.
    let text = format!("select i, length(t) from '{path}' order by i desc limit 1");
    match house.run(&session(&house), &text) {
        Ok(answer) => assert_eq!(answer.lines(), [format!("999 {}", 1 << 20)]),
        Err(error) => assert_eq!(error.state.code(), "53200", "{error}"),
    }
    peak.require_at_most(MEMORY_BYTES);
    assert_eq!(house.runtime.memory().operators().reserved(), 0);
}

#[test]
fn a_dictionary_beyond_the_memory_is_refused() {
    let alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let path = written(&house, "wide.parquet", 400, 1 << 20, true);
    let peak = Peak::since(alone);
    let path = path.display();
    let text = format!("select sum(length(t)) from '{path}'");
    let (code, message) = house.refused(&session(&house), &text);
    assert_eq!(code, "53200", "{message}");
    assert!(message.contains("Parquet"), "{message}");
    peak.require_at_most(MEMORY_BYTES);
    // A column beside it is not concerned.
    let text = format!("select sum(i) from '{path}'");
    assert_eq!(house.rows(&session(&house), &text), ["79800"]);
    assert_eq!(house.runtime.memory().operators().reserved(), 0);
}

/// Footers that name more than they have, at the end of a file that has nothing else.
#[test]
fn a_footer_that_claims_more_than_it_has_is_an_error() {
    let _alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = session(&house);
    let claimed = [0xff, 0xff, 0xff, 0xff, 0x07];
    // version 2, a schema of a root with one column, no rows, and row groups without end.
    let schema = [
        &[0x15, 4, 0x19, 0x2c][..],
        &[0x48, 1, b's', 0x15, 2, 0],
        &[0x15, 2, 0x25, 0, 0x18, 1, b'a', 0],
        &[0x16, 0],
    ];
    let groups = [&schema.concat()[..], &[0x19, 0xfc], &claimed, &[0]].concat();
    let columns = [&[0x15, 4, 0x19, 0xfc][..], &claimed, &[0]].concat();
    let children = [
        &[
            0x15, 4, 0x19, 0x1c, 0x48, 1, b's', 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0,
        ][..],
        &[0x16, 0, 0x19, 0x0c, 0],
    ]
    .concat();
    let ends = [
        (groups.clone(), groups.len() as u32),
        (columns.clone(), columns.len() as u32),
        (children.clone(), children.len() as u32),
        (columns, u32::MAX),
    ];
    for (number, (footer, length)) in ends.into_iter().enumerate() {
        let path = house
            .directory
            .path()
            .join(format!("broken{number}.parquet"));
        let file = [b"PAR1", &footer[..], &length.to_le_bytes(), b"PAR1"].concat();
        std::fs::write(&path, file).unwrap();
        let text = format!("select count(*) from '{}'", path.display());
        let (code, message) = house.refused(&session, &text);
        assert_eq!(code, "58030", "{message}");
        assert!(message.contains("claims"), "{message}");
    }
}

/// A page whose header says that it becomes two gigabytes.
#[test]
fn a_page_that_claims_gigabytes_is_refused() {
    let alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let path = written(&house, "page.parquet", 8, 1 << 20, false);
    let mut file = std::fs::read(&path).unwrap();
    // Pages of some megabytes: their size is a varint of four bytes, and the largest of four bytes
    // is 128 MiB.
    let varint = |value: u32| -> Vec<u8> {
        let mut value = u64::from(value) << 1;
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let after = varint((1 << 27) - 1);
    // Each text with its length, and perhaps some bytes more.
    let sizes = (1..=8).flat_map(|rows| (0..16).map(move |more| rows * ((1 << 20) + 4) + more));
    let at = sizes.map(varint).find_map(|before| {
        assert_eq!(before.len(), after.len());
        file.windows(before.len())
            .position(|window| window == before)
    });
    let at = at.expect("the header of a page");
    file[at..at + after.len()].copy_from_slice(&after);
    std::fs::write(&path, file).unwrap();
    let peak = Peak::since(alone);
    let text = format!("select sum(length(t)) from '{}'", path.display());
    let (code, message) = house.refused(&session(&house), &text);
    assert_eq!(code, "53200", "{message}");
    peak.require_at_most(MEMORY_BYTES);
}
