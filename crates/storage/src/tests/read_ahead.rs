//! Tests of read-ahead, on a file system that records requests.

use std::ops::ControlFlow;

use super::*;
use crate::database::warm::WarmExtent;
use crate::files::io::testing::RecordingFileSystem;

const ROWS: u64 = 600_000;

/// A permutation of some megabytes on a disk that notes what is asked for.
fn large_index(disk: &RecordingFileSystem) -> Arc<QuadIndex> {
    let path = Path::new("/psog.col");
    let mut writer = QuadIndexWriter::create(disk, path, Permutation::Psog).unwrap();
    let rows: Vec<QuadRow> = (0..ROWS)
        .map(|row| [1, row * 7, row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20, 0])
        .collect();
    writer.push_rows(&rows).unwrap();
    writer.finish().unwrap();
    QuadIndex::open(disk, path).unwrap()
}

#[test]
fn look_ups_that_were_announced_ask_the_disk_for_nothing_more() {
    let disk = RecordingFileSystem::new();
    let index = large_index(&disk);
    let mut cursor = index.cursor();
    assert!(cursor.is_cold());
    // Fences are touched while the blocks are searched for, so that they do not count below.
    disk.take_read_ahead();
    let keys: Vec<[u64; 2]> = (0..20).map(|key| [1, key * 7 * (ROWS / 20)]).collect();
    cursor.will_seek(keys.iter().map(|key| &key[..])).unwrap();
    let asked = disk.take_read_ahead();
    let bytes: usize = asked.iter().map(|(_, range)| range.len()).sum();
    assert!(asked.len() >= 10, "{} extents", asked.len());
    let file_bytes = index.summary().bytes as usize;
    assert!(bytes < file_bytes / 2, "{bytes} of {file_bytes} bytes");
    let mut found = Vec::new();
    for key in &keys {
        let range = cursor.seek(&key.map(TermId::from_bits)).unwrap();
        assert_eq!(range.len(), 1);
        cursor.read(range, 2, &mut found).unwrap();
    }
    assert_eq!(found.len(), keys.len());
    assert_eq!(disk.take_read_ahead(), []);
    // One that was not announced is a surprise.
    cursor
        .seek(&[1, 7 * (ROWS / 40)].map(TermId::from_bits))
        .unwrap();
    assert_eq!(disk.take_read_ahead().len(), 1);
}

#[test]
fn a_long_range_is_asked_for_before_it_is_read() {
    let disk = RecordingFileSystem::new();
    let index = large_index(&disk);
    let mut cursor = index.cursor();
    // The fences, which show where the vectors end.
    cursor.seek(&[1, 0].map(TermId::from_bits)).unwrap();
    disk.take_read_ahead();
    let mut values = Vec::new();
    cursor
        .read(RowRange::new(10, ROWS / 2), 1, &mut values)
        .unwrap();
    assert_eq!(values.len() as u64, ROWS / 2 - 10);
    let asked = disk.take_read_ahead();
    assert_eq!(asked.len(), 1, "{asked:?}");
}

#[test]
fn pages_of_many_ranks_are_asked_for_together() {
    let disk = RecordingFileSystem::new();
    let terms: Vec<Term<'static>> = (0..60_000u64)
        .map(|number| {
            let text = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            Term::string(format!(
                "{number:06} {text:016x} {:016x}",
                text.rotate_left(17)
            ))
        })
        .collect();
    let quads: Vec<SmallQuad> = terms
        .iter()
        .map(|term| (iri("s"), iri("p"), term.clone(), None))
        .collect();
    let file_system = Arc::new(disk.clone());
    build_small_with(file_system.clone(), "/db", &quads).unwrap();
    let database = Database::open_with(file_system, "/db").unwrap();
    let snapshot = database.snapshot();
    let dictionary = snapshot.dictionary();
    let ranks: Vec<u64> = (0..30).map(|part| 2_000 * part + 100).collect();
    let go_on = &mut |_| ControlFlow::Continue(());
    snapshot.warm(WarmExtent::Directories, go_on).unwrap();
    disk.take_read_ahead();
    dictionary.will_read(&ranks).unwrap();
    let asked = disk.take_read_ahead();
    assert!(asked.len() >= 10, "{} extents", asked.len());
    let mut found = 0;
    dictionary.keys(&ranks, |_, _| found += 1).unwrap();
    assert_eq!(found, ranks.len());
    // Symbol tables and vocabularies came with the directory.
    assert_eq!(disk.take_read_ahead(), []);
}

#[test]
fn a_warm_database_asks_for_nothing_and_the_limit_holds() {
    let disk = RecordingFileSystem::new();
    let file_system: Arc<dyn crate::files::io::FileSystem> = Arc::new(disk.clone());
    let quads = some_quads(true);
    build_small_with(Arc::clone(&file_system), "/db", &quads).unwrap();
    let go_on = &mut |_| ControlFlow::Continue(());
    let database = Database::open_with(Arc::clone(&file_system), "/db").unwrap();
    let snapshot = database.snapshot();
    let everything = |bytes_max| WarmExtent::Everything { bytes_max };
    let some = snapshot.warm(everything(100), go_on).unwrap();
    assert!(!some.is_whole && some.bytes <= 100, "{some:?}");
    let directories = snapshot.warm(WarmExtent::Directories, go_on).unwrap();
    assert!(directories.is_whole);
    let all = snapshot.warm(everything(u64::MAX), go_on).unwrap();
    assert!(all.is_whole);
    assert!(all.bytes > directories.bytes && all.bytes < snapshot.file_bytes());
    disk.take_read_ahead();
    assert_eq!(dump(&snapshot).unwrap().len(), quads.len());
    assert_eq!(disk.take_read_ahead(), []);
}

#[test]
fn warming_meets_damage_as_any_reader_does() {
    let disk = RecordingFileSystem::new();
    let file_system: Arc<dyn crate::files::io::FileSystem> = Arc::new(disk.clone());
    build_small_with(Arc::clone(&file_system), "/db", &some_quads(false)).unwrap();
    let files = disk.files();
    let ospg = files
        .iter()
        .find(|path| path.ends_with("ospg.col"))
        .unwrap();
    disk.flip_bit(ospg, 8 * 100).unwrap();
    let database = Database::open_with(file_system, "/db").unwrap();
    let extent = WarmExtent::Everything {
        bytes_max: u64::MAX,
    };
    let warmed = database
        .snapshot()
        .warm(extent, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(warmed, Err(Error::Corrupt { .. })), "{warmed:?}");
}
