//! Tests of the log's framing, by tearing and flipping each byte of small logs.

use std::sync::Arc;

use bytes::Bytes;
use openraft::storage::RaftLogStorage;
use openraft::{CommittedLeaderId, EntryPayload};

use crate::blocking::Blocking;
use crate::disk::{self, Disk};
use crate::error::Error;
use crate::log::LogStore;
use crate::log::files::{Contents, LogFiles};
use crate::log::frame::{encode_cut, encode_entries, encode_purged};
use crate::simulation::disk::MemoryDisk;
use crate::types::{Batch, Command, Content, Entry, LogId, Mode, Request, Vote};

const FILE: &str = "log/00000000000000000001";

fn log_id(index: u64) -> LogId {
    LogId::new(CommittedLeaderId::new(2, 1), index)
}

fn entry(index: u64) -> Entry {
    let content = Content::Inline(Bytes::from(vec![index as u8; index as usize * 3]));
    let command = Command::Put {
        path: format!("object/{index}"),
        mode: Mode::Create,
        content,
    };
    let request = Request {
        session: 1,
        number: index,
        floor: 0,
        command,
    };
    Entry {
        log_id: log_id(index),
        payload: EntryPayload::Normal(Batch {
            now_us: index,
            commands: vec![request],
        }),
    }
}

fn entries(range: std::ops::Range<u64>) -> Vec<Entry> {
    range.map(entry).collect()
}

fn open(disk: &Arc<MemoryDisk>) -> Result<(LogFiles, Contents), Error> {
    LogFiles::open(disk.clone(), 1 << 20)
}

fn indexes(contents: &Contents) -> Vec<u64> {
    contents
        .entries
        .iter()
        .map(|(entry, _)| entry.log_id.index)
        .collect()
}

/// A log of three writes, and where each ends.
fn written() -> (Arc<MemoryDisk>, Vec<usize>) {
    let disk = Arc::new(MemoryDisk::default());
    let (mut files, _) = open(&disk).unwrap();
    let mut ends = Vec::new();
    for range in [0..2, 2..3, 3..6] {
        let (frame, _) = encode_entries(None, &entries(range.clone())).unwrap();
        files.write(&frame, Some(range.end - 1)).unwrap();
        ends.push(disk.read(FILE).unwrap().unwrap().len());
    }
    (disk, ends)
}

#[test]
fn a_log_that_is_torn_at_any_byte_keeps_the_writes_before_it_and_takes_new_ones() {
    let (disk, ends) = written();
    let whole = disk.read(FILE).unwrap().unwrap();
    for length in 0..=whole.len() {
        let torn = Arc::new(MemoryDisk::default());
        torn.write_at(FILE, 0, &whole[..length]).unwrap();
        let (mut files, contents) = open(&torn).unwrap();
        let kept = [0, 2, 3, 6][ends.iter().filter(|&&end| end <= length).count()];
        assert_eq!(
            indexes(&contents),
            (0..kept).collect::<Vec<_>>(),
            "torn at {length}"
        );
        let (frame, _) = encode_entries(None, &entries(kept..kept + 1)).unwrap();
        files.write(&frame, Some(kept)).unwrap();
        assert_eq!(
            indexes(&open(&torn).unwrap().1),
            (0..=kept).collect::<Vec<_>>(),
            "torn at {length}"
        );
    }
}

#[test]
fn a_flipped_bit_anywhere_but_in_the_last_write_is_an_error() {
    let (disk, ends) = written();
    let whole = disk.read(FILE).unwrap().unwrap();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            let damaged = Arc::new(MemoryDisk::default());
            damaged.write_at(FILE, 0, &flipped).unwrap();
            match open(&damaged) {
                Err(Error::Damaged { path, .. }) => {
                    assert!(at < ends[1] && path == FILE, "bit {bit} of byte {at}")
                }
                Ok((_, contents)) => {
                    assert!(at >= ends[1], "bit {bit} of byte {at} was not seen");
                    assert_eq!(indexes(&contents), [0, 1, 2]);
                }
                Err(other) => panic!("bit {bit} of byte {at}: {other}"),
            }
        }
    }
}

#[test]
fn a_broken_write_in_a_file_that_another_follows_is_an_error() {
    let (disk, _) = written();
    let whole = disk.read(FILE).unwrap().unwrap();
    disk.truncate(FILE, whole.len() as u64 - 1).unwrap();
    let (frame, _) = encode_entries(None, &entries(6..7)).unwrap();
    disk.write_at("log/00000000000000000002", 0, &frame)
        .unwrap();
    assert!(matches!(open(&disk), Err(Error::Damaged { .. })));
}

#[test]
fn a_cut_and_a_purge_are_still_there_after_reading_anew() {
    let (disk, _) = written();
    let (mut files, _) = open(&disk).unwrap();
    files.write(&encode_cut(4).unwrap(), None).unwrap();
    let (frame, _) = encode_entries(Some(log_id(3)), &entries(4..8)).unwrap();
    files.write(&frame, Some(7)).unwrap();
    files
        .write(&encode_purged(log_id(1)).unwrap(), None)
        .unwrap();
    let (_, contents) = open(&disk).unwrap();
    assert_eq!(indexes(&contents), (2..8).collect::<Vec<_>>());
    assert_eq!(contents.purged, Some(log_id(1)));
    assert_eq!(contents.committed, Some(log_id(3)));
}

#[test]
fn files_go_from_the_oldest_on_when_their_entries_are_purged() {
    let disk = Arc::new(MemoryDisk::default());
    let (mut files, _) = LogFiles::open(disk.clone(), 1).unwrap();
    for index in 0..5 {
        let (frame, _) = encode_entries(None, &entries(index..index + 1)).unwrap();
        files.write(&frame, Some(index)).unwrap();
    }
    files
        .write(&encode_purged(log_id(2)).unwrap(), None)
        .unwrap();
    files.remove_purged(2).unwrap();
    assert_eq!(disk.list("log").unwrap().len(), 3);
    let (_, contents) = LogFiles::open(disk.clone(), 1).unwrap();
    assert_eq!(indexes(&contents), [3, 4]);
    assert_eq!(contents.purged, Some(log_id(2)));
}

#[test]
fn a_purge_beyond_the_end_leaves_an_empty_log_that_goes_on_after_it() {
    let (disk, _) = written();
    let (mut files, _) = open(&disk).unwrap();
    files
        .write(&encode_purged(log_id(40)).unwrap(), None)
        .unwrap();
    let (frame, _) = encode_entries(None, &entries(41..43)).unwrap();
    files.write(&frame, Some(42)).unwrap();
    let (_, contents) = open(&disk).unwrap();
    assert_eq!(indexes(&contents), [41, 42]);
}

#[tokio::test]
async fn a_node_that_led_starts_as_one_that_was_a_candidate() {
    for (leader, is_committed) in [(1, false), (2, true)] {
        let disk: Arc<MemoryDisk> = Arc::default();
        let open = || LogStore::open(1, disk.clone(), Blocking::Here, 1 << 20).unwrap();
        let vote = Vote::new_committed(7, leader);
        open().save_vote(&vote).await.unwrap();
        let read = open().read_vote().await.unwrap().unwrap();
        assert_eq!(read.leader_id(), vote.leader_id());
        assert_eq!(
            read.is_committed(),
            is_committed,
            "node 1 after node {leader} led"
        );
    }
}

#[test]
fn a_small_file_that_was_damaged_is_an_error() {
    let disk = MemoryDisk::default();
    disk::replace(&disk, "vote", b"a vote".to_vec()).unwrap();
    let written = disk.read("vote").unwrap().unwrap();
    for at in 0..written.len() {
        disk.write_at("vote", at as u64, &[written[at] ^ 4])
            .unwrap();
        assert!(
            matches!(
                disk::read_replaced(&disk, "vote"),
                Err(Error::Damaged { .. })
            ),
            "byte {at}"
        );
        disk.write_at("vote", at as u64, &written[at..=at]).unwrap();
    }
    assert_eq!(
        disk::read_replaced(&disk, "vote").unwrap().unwrap(),
        b"a vote"
    );
}
