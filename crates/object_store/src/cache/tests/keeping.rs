//! Tests of what stays on disk: across processes, after damage, and by owner.

use orrery_storage::io::ByteSource;

use super::super::source::MappedFile;
use super::*;

#[test]
fn the_next_process_has_what_was_brought_before() {
    let mut fixture = Fixture::new(64 * MIB);
    fixture.read(&fixture.mapped("a", MIB + 5), 300 * KIB..MIB + 5);
    let before = fixture.cache().counts().bytes;
    fixture.restart();
    let counts = fixture.cache().counts();
    assert_eq!(counts.bytes, before);
    let file = fixture.mapped("a", MIB + 5);
    fixture.read(&file, 300 * KIB..MIB + 5);
    assert_eq!(fixture.requests(), 0);
    fixture.read(&file, 0..1);
    assert_eq!(fixture.requests(), 1);
    assert_eq!(fixture.cache().counts().damaged_pieces, 0);
}

#[test]
fn what_was_damaged_between_two_processes_is_brought_again() {
    let mut fixture = Fixture::new(64 * MIB);
    fixture.read(&fixture.mapped("a", MIB), 0..MIB);
    fixture.damage(1, 77 * PIECE + 9);
    fixture.restart();
    let file = fixture.mapped("a", MIB);
    fixture.read(&file, 0..MIB);
    assert_eq!(fixture.origin.calls(), [77 * PIECE..78 * PIECE]);
    assert_eq!(fixture.cache().counts().damaged_pieces, 1);
    assert_eq!(fixture.cache().counts().bytes, MIB);
}

#[test]
fn bytes_that_never_reached_the_disk_are_brought_again() {
    let mut fixture = Fixture::new(64 * MIB);
    fixture.read(&fixture.mapped("a", MIB), 0..MIB);
    let path = fixture.cache().directory().join("files/1.bytes");
    let local = std::fs::File::options().write(true).open(path).unwrap();
    local.set_len(0).unwrap();
    local.set_len(MIB).unwrap();
    fixture.restart();
    fixture.read(&fixture.mapped("a", MIB), 0..MIB);
    assert_eq!(fixture.origin.calls(), [0..MIB]);
}

#[test]
fn local_files_of_which_a_half_is_missing_or_wrong_are_removed() {
    let mut fixture = Fixture::new(64 * MIB);
    for key in ["a", "b", "c"] {
        fixture.read(&fixture.mapped(key, MIB), 0..MIB);
    }
    let files = fixture.cache().directory().join("files");
    std::fs::write(files.join("1.sums"), "nothing of ours").unwrap();
    std::fs::remove_file(files.join("2.bytes")).unwrap();
    std::fs::write(files.join("3.bytes"), "short").unwrap();
    fixture.restart();
    assert!(fixture.local_files().is_empty());
    fixture.read(&fixture.mapped("a", MIB), 0..MIB);
}

#[test]
fn a_flipped_byte_in_an_open_file_is_mended_by_fetching_anew() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.read(&file, 0..MIB);
    fixture.damage(1, 5 * PIECE);
    assert!(file.0[5 * PIECE as usize] != file.1[5 * PIECE as usize]);
    let source = MappedFile::of(fixture.cache().room.map("a", MIB).unwrap());
    let range = 4 * PIECE as usize..7 * PIECE as usize;
    assert!(source.refetch(range).unwrap());
    fixture.read(&file, 0..MIB);
    let counts = fixture.cache().counts();
    assert_eq!((counts.damaged_pieces, counts.bytes), (1, MIB));
    assert_eq!(fixture.origin.calls()[1..], [4 * PIECE..7 * PIECE]);
}

#[test]
fn a_second_process_gets_a_directory_for_itself_which_goes_with_it() {
    let fixture = Fixture::new(64 * MIB);
    let left = fixture.directory.path().join("private-left");
    std::fs::create_dir(&left).unwrap();
    let second = fixture.another();
    let private = second.directory().to_owned();
    assert_ne!(private, fixture.cache().directory());
    let content = fixture.origin.put("a", MIB);
    let file = second.map("a", MIB).unwrap();
    drop(second);
    file.fetch(0..10).unwrap();
    assert!(file[..10] == content[..10]);
    assert!(private.exists(), "as long as a file is mapped");
    drop(file);
    assert!(!private.exists());
    let mut fixture = fixture;
    fixture.restart();
    assert!(!left.exists(), "what a killed process has left");
}

#[test]
fn an_adopted_file_is_there_wholly_also_for_the_next_process() {
    let mut fixture = Fixture::new(64 * MIB);
    let content = fixture.origin.put("a", MIB + 3);
    let staged = fixture.directory.path().join("staged");
    std::fs::write(&staged, &content).unwrap();
    fixture.cache().adopt("a", &staged).unwrap();
    assert!(!staged.exists());
    for _ in 0..2 {
        fixture.read(&fixture.mapped("a", MIB + 3), 0..MIB + 3);
        assert_eq!(fixture.requests(), 0);
        assert_eq!(fixture.cache().counts().bytes, MIB + PIECE);
        fixture.restart();
    }
}

#[test]
fn a_forgotten_file_can_be_read_while_it_is_mapped_and_then_it_is_gone() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.read(&file, 0..10);
    fixture.cache().forget("a");
    assert!(fixture.local_files().is_empty());
    fixture.read(&file, 500 * KIB..MIB);
    assert_eq!(fixture.cache().mapped_keys(), ["a"]);
    drop(file);
    assert!(fixture.cache().mapped_keys().is_empty());
    assert_eq!(fixture.cache().counts().bytes, 0);
}

#[test]
fn an_object_of_another_length_takes_the_place_of_the_old_one() {
    let fixture = Fixture::new(64 * MIB);
    let old = fixture.mapped("a", MIB);
    fixture.read(&old, 0..MIB);
    let new = fixture.mapped("a", 2 * MIB);
    fixture.read(&new, 0..2 * MIB);
    assert_eq!(fixture.origin.calls()[1..], [0..2 * MIB]);
    assert_eq!(fixture.local_files(), ["2.bytes", "2.sums"]);
}
