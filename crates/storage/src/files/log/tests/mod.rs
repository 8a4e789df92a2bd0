use std::io::Write;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;

use orrery_term::{LanguageTags, PrefixChange, TermId};

use super::header::VERSION;
use super::*;
use crate::Error;
use crate::files::io::testing::RecordingFileSystem;
use crate::files::io::{FileSystem, LocalFileSystem};
use crate::files::varint;
use crate::quads::graph_set::GraphSet;

mod faults;

const FS: &LocalFileSystem = &LocalFileSystem;

fn header() -> LogHeader {
    LogHeader {
        base_segment: "segment-000003".to_owned(),
        base_generation: 3,
        first_commit: 41,
    }
}

fn record(commit: u64) -> LogRecord {
    let row = |number| [1, 2, number, 0].map(|offset| TermId::iri(commit * 10 + offset));
    LogRecord {
        commit,
        time_micros: 1_000_000 + commit as i64,
        who: "somebody".to_owned(),
        next_blank_node: commit * 3,
        first_new_term: commit * 2,
        new_terms: ["a term", ""].into_iter().collect(),
        insertions: (0..5).map(row).collect(),
        deletions: vec![row(9)],
        // Now and then one of the other kind.
        cleared: commit.is_multiple_of(3).then(|| ClearedGraphs {
            graphs: GraphSet::one(TermId::iri(commit)).union(&GraphSet::one(TermId::DEFAULT_GRAPH)),
            added: 5,
            removed: 1 << 40,
        }),
        language_tags: LanguageTags::default(),
        prefixes: Vec::new(),
        tables: Vec::new(),
    }
}

/// A directory with a log of records, and where each of them stands.
fn written(commits: std::ops::Range<u64>) -> (TempDir, PathBuf, Vec<Appended>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000001.log");
    let writer = LogWriter::create(FS, &path, &header()).unwrap();
    let places = commits
        .map(|commit| writer.append(&record(commit)).unwrap())
        .collect();
    writer.close().unwrap();
    (directory, path, places)
}

fn read_all(path: &Path) -> crate::Result<(Vec<LogRecord>, LogEnd)> {
    read_with(FS, path)
}

fn read_with(file_system: &dyn FileSystem, path: &Path) -> crate::Result<(Vec<LogRecord>, LogEnd)> {
    let mut reader = LogReader::open(file_system, path)?;
    let mut records = Vec::new();
    while let Some(logged) = reader.next_record()? {
        records.push(logged.record);
    }
    Ok((records, reader.end()?))
}

fn records(commits: std::ops::Range<u64>) -> Vec<LogRecord> {
    commits.map(record).collect()
}

#[test]
fn records_come_back_in_order_from_the_start_and_from_any_place() {
    let (_directory, path, places) = written(41..50);
    let (found, end) = read_all(&path).unwrap();
    assert_eq!(found, records(41..50));
    assert_eq!(end.position, places[8].end);
    assert_eq!((end.durable, end.tail), (end.position, LogTail::Mark));
    let mut reader = LogReader::open_at(FS, &path, places[6].start).unwrap();
    assert_eq!(reader.header(), &header());
    let logged = reader.next_record().unwrap().unwrap();
    assert_eq!((logged.start, logged.end), (places[6].start, places[6].end));
    assert_eq!(logged.record, record(47));
    assert_eq!(reader.end().unwrap().position, end.position);
}

#[test]
fn a_file_cut_off_anywhere_gives_the_whole_records_before() {
    let (_directory, path, places) = written(41..46);
    let whole = std::fs::read(&path).unwrap();
    for length in (places[0].start as usize..whole.len()).rev() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let (found, end) = read_all(&path).unwrap();
        let expected = places.iter().filter(|place| place.end <= length as u64);
        assert_eq!(found, records(41..41 + expected.count() as u64));
        assert_eq!(end.position + end.torn_bytes(), length as u64);
    }
    std::fs::write(&path, &whole[..places[0].start as usize - 1]).unwrap();
    assert!(matches!(read_all(&path), Err(Error::Corrupt { .. })));
}

#[test]
fn a_flipped_bit_is_reported_and_never_skipped() {
    let disk = RecordingFileSystem::new();
    let path = Path::new("/log");
    let writer = LogWriter::create(&disk, path, &header()).unwrap();
    for commit in 41..46 {
        writer.append(&record(commit)).unwrap();
    }
    writer.close().unwrap();
    for bit in 0..disk.metadata(path).unwrap().unwrap().bytes as usize * 8 {
        disk.flip_bit(path, bit).unwrap();
        match read_with(&disk, path) {
            // The mark behind the last record holds no commit, but its damage is told.
            Ok((found, end)) => {
                assert!(bit as u64 / 8 >= end.position && found == records(41..46));
                assert_eq!(end.tail, LogTail::BrokenMark);
            }
            Err(Error::Corrupt { path: named, .. }) => assert_eq!(named, path),
            Err(other) => panic!("bit {bit}: {other}"),
        }
        disk.flip_bit(path, bit).unwrap();
    }
    assert_eq!(read_with(&disk, path).unwrap().0, records(41..46));
}

#[test]
fn a_power_cut_that_keeps_the_second_of_two_unsynced_records_is_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000001.log");
    let writer = LogWriter::create(FS, &path, &header()).unwrap();
    let first = writer.append(&record(41)).unwrap();
    writer.wait(first.end).unwrap();
    let second = writer.append(&record(42)).unwrap();
    let third = writer.append(&record(43)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[second.start as usize..second.end as usize].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let (found, end) = read_all(&path).unwrap();
    assert_eq!(found, records(41..42));
    assert_eq!(end.tail, LogTail::Torn(third.end - second.start));

    // The writer that goes on leaves nothing of the third behind.
    let writer = LogWriter::resume(FS, &path, &end).unwrap();
    writer.append(&record(42)).unwrap();
    writer.close().unwrap();
    assert_eq!(read_all(&path).unwrap().0, records(41..43));
}

#[test]
fn a_log_goes_on_after_it_was_closed_or_torn() {
    let (_directory, path, _) = written(41..44);
    for (commit, tail) in [
        (44, ""),
        (45, "torn"),
        (46, "a longer tail that is no record"),
    ] {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        file.write_all(tail.as_bytes()).unwrap();
        let (found, end) = read_all(&path).unwrap();
        assert_eq!(found, records(41..commit));
        let writer = LogWriter::resume(FS, &path, &end).unwrap();
        let appended = writer.append(&record(commit)).unwrap();
        writer.wait(appended.end).unwrap();
    }
    assert_eq!(read_all(&path).unwrap().0, records(41..47));
}

#[test]
fn a_reader_beside_the_writer_sees_what_was_appended_so_far() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000001.log");
    let writer = LogWriter::create(FS, &path, &header()).unwrap();
    let mut position = writer.end();
    for commit in 41..60 {
        writer.append(&record(commit)).unwrap();
        let mut reader = LogReader::open_at(FS, &path, position).unwrap();
        let logged = reader.next_record().unwrap().unwrap();
        assert_eq!(logged.record.commit, commit);
        assert!(reader.next_record().unwrap().is_none());
        position = logged.end;
    }
}

#[test]
fn many_threads_share_the_syncs_and_all_their_records_are_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000001.log");
    let writer = Arc::new(LogWriter::create(FS, &path, &header()).unwrap());
    let next = Arc::new(parking_lot::Mutex::new(41));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut turn = next.lock();
                    let appended = writer.append(&record(*turn)).unwrap();
                    *turn += 1;
                    drop(turn);
                    writer.wait(appended.end).unwrap();
                    assert!(writer.durable() >= appended.end);
                }
            });
        }
    });
    assert_eq!(read_all(&path).unwrap().0, records(41..121));
}

#[test]
fn another_files_records_and_a_wrong_order_are_refused() {
    let (_directory, path, _) = written(41..43);
    let (_other, other_path, places) = written(41..44);
    let mut bytes = std::fs::read(&path).unwrap();
    let other = std::fs::read(&other_path).unwrap();
    bytes.extend_from_slice(&other[places[2].start as usize..]);
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read_all(&path).unwrap().0, records(41..43));

    let end = read_all(&path).unwrap().1;
    let writer = LogWriter::resume(FS, &path, &end).unwrap();
    writer.append(&record(57)).unwrap();
    let error = read_all(&path).unwrap_err().to_string();
    assert!(
        error.contains("commit 57 where commit 43 belongs"),
        "{error}"
    );
}

#[test]
fn a_literal_that_imitates_a_record_is_not_taken_for_one() {
    // Without the salt this would look like a record written when all before was durable.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000001.log");
    let writer = LogWriter::create(FS, &path, &header()).unwrap();
    let mut imitation = vec![9, 0, 0, 0];
    let mut content = (writer.end() + 1).to_le_bytes().to_vec();
    content.push(KIND_MARK);
    imitation.extend_from_slice(&crc32c::crc32c(&content).to_le_bytes());
    imitation.extend_from_slice(&content);
    let mut evil = record(41);
    evil.new_terms.push(&imitation);
    let appended = writer.append(&evil).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(appended.end as usize - 1);
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read_all(&path).unwrap().0, []);
}

#[test]
fn a_file_that_is_no_log_or_of_a_later_version_is_told() {
    let (_directory, path, _) = written(41..42);
    let mut bytes = header().to_bytes(7);
    set_version(&mut bytes, 4);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        LogReader::open(FS, &path),
        Err(Error::FormatVersion { found: 4, .. })
    ));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(
        LogReader::open(FS, &path),
        Err(Error::Corrupt { .. })
    ));
}

fn set_version(log: &mut [u8], version: u8) {
    log[16] = version;
    let end = 16 + 24 + header().base_segment.len();
    let crc = crc32c::crc32c(&log[16..end]);
    log[12..16].copy_from_slice(&crc.to_le_bytes());
}

fn salt_of(log: &[u8]) -> u32 {
    header::u32_at(log, 20).unwrap()
}

/// The record as versions 1 and 2 of the log wrote it.
fn unsectioned(record: &LogRecord) -> (u8, Vec<u8>) {
    let mut out = Vec::new();
    out.extend_from_slice(&record.commit.to_le_bytes());
    out.extend_from_slice(&record.time_micros.to_le_bytes());
    let text = |text: &[u8], out: &mut Vec<u8>| {
        varint::write(text.len() as u64, out);
        out.extend_from_slice(text);
    };
    text(record.who.as_bytes(), &mut out);
    varint::write(record.next_blank_node, &mut out);
    varint::write(record.first_new_term, &mut out);
    varint::write(record.new_terms.len() as u64, &mut out);
    record.new_terms.iter().for_each(|key| text(key, &mut out));
    record::encode_rows(&record.insertions, &mut out);
    record::encode_rows(&record.deletions, &mut out);
    let Some(cleared) = &record.cleared else {
        return (KIND_UNSECTIONED_COMMIT, out);
    };
    cleared.graphs.encode(&mut out);
    varint::write(cleared.added, &mut out);
    varint::write(cleared.removed, &mut out);
    (KIND_UNSECTIONED_CLEARING_COMMIT, out)
}

#[test]
fn logs_of_earlier_versions_are_read_and_not_written_on() {
    for version in 1..VERSION as u8 {
        let (_directory, path, _) = written(41..41);
        let mut bytes = std::fs::read(&path).unwrap();
        set_version(&mut bytes, version);
        bytes.truncate(16 + 24 + header().base_segment.len());
        for record in records(41..44) {
            let mut framed = Vec::new();
            let (kind, content) = unsectioned(&record);
            frame(salt_of(&bytes), 0, kind, &mut framed, |out| {
                out.extend_from_slice(&content);
            });
            bytes.extend_from_slice(&framed);
        }
        std::fs::write(&path, &bytes).unwrap();
        let (found, end) = read_all(&path).unwrap();
        assert_eq!(found, records(41..44));
        assert_eq!((end.position, end.is_current), (bytes.len() as u64, false));
    }
}

/// The bytes are a promise: a change of them needs a new version of the log.
#[test]
fn the_bytes_of_a_record_are_these() {
    let mut bytes = Vec::new();
    let mut small = record(42);
    small.insertions.truncate(1);
    small.encode(&mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = [
        "2a00000000000000", // commit
        "6a420f0000000000", // time
        "0108000000",
        "736f6d65626f6479",
        "0201000000",
        "7e",
        "0309000000",
        "540661207465726d00",
    ];
    let head = expected.concat();
    assert_eq!(&hex[..head.len()], head);
    let rest = [
        "0426000000",
        "010fca8680808080808040cc8680808080808040c88680808080808040c88680808080808040",
        "0526000000",
        "010fca8680808080808040cc8680808080808040da8680808080808040c88680808080808040",
        "0613000000",
        "000201aa8080808080808020",
        "05808080808020",
    ];
    assert_eq!(&hex[head.len()..], rest.concat());
}

/// A log whose second commit has a further section.
fn with_section(kind: u8) -> (TempDir, PathBuf, u64) {
    let (directory, path, places) = written(41..42);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = places[0].end;
    bytes.truncate(end as usize);
    let mut framed = Vec::new();
    frame(salt_of(&bytes), end, KIND_COMMIT, &mut framed, |out| {
        record(42).encode(out);
        out.extend_from_slice(&[kind, 3, 0, 0, 0]);
        out.extend_from_slice(b"new");
    });
    bytes.extend_from_slice(&framed);
    std::fs::write(&path, &bytes).unwrap();
    (directory, path, end)
}

#[test]
fn an_unknown_section_is_passed_over_if_it_says_that_it_may_be() {
    let (_directory, path, _) = with_section(200);
    assert_eq!(read_all(&path).unwrap().0, records(41..43));
    let (_directory, path, end) = with_section(100);
    let error = read_all(&path).unwrap_err();
    assert!(
        matches!(error, Error::UnknownSection { offset, kind: 100, .. } if offset == end),
        "{error}"
    );
    let advice = "use the program that wrote it, or a newer one";
    assert!(error.to_string().contains(advice), "{error}");
}

/// Without them the numbers of blank nodes and terms would begin anew.
#[test]
fn a_commit_without_a_section_that_is_always_there_is_damage() {
    const HEAD_BYTES: usize = 16;
    let mut content = Vec::new();
    record(42).encode(&mut content);
    let (head, mut rest) = content.split_at(HEAD_BYTES);
    let mut sections = Vec::new();
    while !rest.is_empty() {
        let length = 5 + header::u32_at(rest, 1).unwrap() as usize;
        let (section, after) = rest.split_at(length);
        sections.push(section);
        rest = after;
    }
    for missing in [None, Some(2), Some(3)] {
        let (_directory, path, places) = written(41..42);
        let mut bytes = std::fs::read(&path).unwrap();
        let end = places[0].end;
        bytes.truncate(end as usize);
        let mut framed = Vec::new();
        frame(salt_of(&bytes), end, KIND_COMMIT, &mut framed, |out| {
            out.extend_from_slice(head);
            let kept = sections
                .iter()
                .filter(|section| Some(section[0]) != missing);
            kept.for_each(|section| out.extend_from_slice(section));
        });
        bytes.extend_from_slice(&framed);
        std::fs::write(&path, &bytes).unwrap();
        let read = read_all(&path);
        match missing {
            None => assert_eq!(read.unwrap().0, records(41..43)),
            Some(_) => assert!(
                matches!(read, Err(Error::Corrupt { offset, .. }) if offset == end),
                "{missing:?}"
            ),
        }
    }
}

#[test]
fn a_record_of_an_unknown_kind_is_neither_skipped_nor_cut_off() {
    let (_directory, path, places) = written(41..43);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = places[1].end;
    bytes.truncate(end as usize);
    let mut unknown = Vec::new();
    frame(salt_of(&bytes), end, 77, &mut unknown, |out| {
        out.extend_from_slice(b"of a later program");
    });
    bytes.extend_from_slice(&unknown);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        read_all(&path),
        Err(Error::UnknownRecord { offset, kind: 77, .. }) if offset == end
    ));
    // It also speaks for the records before it.
    bytes[places[1].start as usize + 20] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        read_all(&path),
        Err(Error::Corrupt { offset, .. }) if offset == places[1].start
    ));
}

#[test]
fn an_old_mark_that_came_back_hides_no_durable_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000001.log");
    let writer = LogWriter::create(FS, &path, &header()).unwrap();
    let first = writer.append(&record(41)).unwrap();
    writer.wait(first.end).unwrap();
    let place = first.end as usize..first.end as usize + MARK_BYTES;
    let mark = std::fs::read(&path).unwrap()[place.clone()].to_vec();
    let second = writer.append(&record(42)).unwrap();
    writer.append(&record(43)).unwrap();
    let with_mark = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[place.clone()].copy_from_slice(&mark);
        std::fs::write(path, &bytes).unwrap();
    };
    // Nothing says that the second was durable: the power went.
    let whole = std::fs::read(&path).unwrap();
    with_mark(&path);
    let (found, end) = read_all(&path).unwrap();
    assert_eq!((found, end.position), (records(41..42), first.end));
    assert!(matches!(end.tail, LogTail::Torn(_)));
    // The third says so.
    std::fs::write(&path, &whole).unwrap();
    writer.wait(second.end).unwrap();
    writer.append(&record(44)).unwrap();
    with_mark(&path);
    assert!(matches!(
        read_all(&path),
        Err(Error::Corrupt { offset, .. }) if offset == first.end
    ));
}

#[test]
fn the_search_of_a_tail_costs_what_the_tail_is_long_whatever_it_holds() {
    const WORDS: u64 = 64 * 1024;
    // Every sixteenth byte begins what could be a record, some of them as long as all the rest.
    let mut bytes = Vec::new();
    for word in 0..WORDS {
        let left = (WORDS - word) * 16 - 8;
        bytes.extend_from_slice(&(left as u32).to_le_bytes());
        bytes.extend_from_slice(&[0xA5; 4]);
        bytes.extend_from_slice(&1001u64.to_le_bytes());
    }
    let mut tail = tail::Tail::new(&bytes, 1000, 7);
    assert!(!tail.was_durable());
    // At 64 bytes a candidate this is at most some forty times the tail, and was half of its
    // square.
    assert!(tail.summed_bytes >= bytes.len() as u64);
    assert!(tail.summed_bytes < 64 * bytes.len() as u64);

    // One that is real is found among them.
    let mut real = Vec::new();
    frame(7, 1001, KIND_COMMIT, &mut real, |out| {
        out.extend_from_slice(&bytes[..5000]);
    });
    bytes.extend_from_slice(&real);
    assert!(tail::Tail::new(&bytes, 1000, 7).was_durable());
    assert!(!tail::Tail::new(&bytes, 1000, 8).was_durable());
}

fn any_id() -> impl Strategy<Value = TermId> {
    prop_oneof![
        (0u64..100).prop_map(TermId::iri),
        (0u64..1 << 48).prop_map(TermId::literal),
        (0u64..1000).prop_map(TermId::delta),
        (0u64..1000).prop_map(TermId::blank_node),
        Just(TermId::DEFAULT_GRAPH),
    ]
}

fn any_rows() -> impl Strategy<Value = Vec<[TermId; 4]>> {
    proptest::collection::vec([any_id(), any_id(), any_id(), any_id()], 0..30)
}

fn any_prefix_change() -> impl Strategy<Value = PrefixChange> {
    (0..3, "[a-zé]{0,3}", "[a-z:/#]{0,5}").prop_map(|(kind, name, iri)| match kind {
        0 => PrefixChange::Removed { name },
        1 => PrefixChange::Loaded { name, iri },
        _ => PrefixChange::Given { name, iri },
    })
}

proptest! {
    #[test]
    fn any_record_round_trips_and_no_prefix_of_it_is_taken_for_it(
        commit: u64,
        time_micros: i64,
        who: String,
        next_blank_node: u64,
        first_new_term: u64,
        new_terms in proptest::collection::vec(any::<Vec<u8>>(), 0..5),
        insertions in any_rows(),
        deletions in any_rows(),
        tags in proptest::collection::vec("[a-cA-C]{1,2}(-[a-cA-C]{1,3})?", 0..4),
        prefixes in proptest::collection::vec(any_prefix_change(), 0..4),
        cleared in proptest::option::of((proptest::collection::vec(any_id(), 0..4), any::<u64>(), any::<u64>())),
    ) {
        let cleared = cleared.map(|(graphs, added, removed)| {
            let one = graphs.into_iter().map(GraphSet::one);
            let graphs = one.fold(GraphSet::default(), |all, one| all.union(&one));
            ClearedGraphs { graphs, added, removed }
        });
        let record = LogRecord {
            commit,
            time_micros,
            who,
            next_blank_node,
            first_new_term,
            new_terms: new_terms.into_iter().collect(),
            insertions,
            deletions,
            cleared,
            language_tags: LanguageTags::default(),
            prefixes: Vec::new(),
            tables: Vec::new(),
        };
        let with_tags = LogRecord {
            language_tags: tags.iter().map(String::as_str).collect(),
            prefixes,
            ..record.clone()
        };
        let mut tagged = Vec::new();
        with_tags.encode(&mut tagged);
        prop_assert_eq!(LogRecord::decode(&tagged), Ok(with_tags));
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        for length in 0..bytes.len() {
            // Cut between two sections it has a form, of another record: that nothing is missing is
            // known from the checksum.
            let cut = LogRecord::decode(&bytes[..length]);
            prop_assert!(cut.as_ref() != Ok(&record));
        }
        let (kind, before) = unsectioned(&record);
        let has_cleared = kind == KIND_UNSECTIONED_CLEARING_COMMIT;
        let read = LogRecord::decode_unsectioned(&before, has_cleared);
        prop_assert_eq!(read.as_ref(), Some(&record));
        prop_assert_eq!(LogRecord::decode(&bytes), Ok(record));
    }
}
