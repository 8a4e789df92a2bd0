use std::path::{Path, PathBuf};

use super::*;
use crate::Error;
use crate::files::io::LocalFileSystem;

const KIND: FileKind = FileKind(*b"TEST");

fn write(directory: &Path, blocks: &[Vec<u8>]) -> (PathBuf, FileSummary) {
    let path = directory.join("blocks");
    let mut writer = BlockFileWriter::create(&LocalFileSystem, &path, KIND).unwrap();
    for (number, block) in blocks.iter().enumerate() {
        assert_eq!(writer.append(block).unwrap(), BlockNumber(number as u32));
    }
    (path, writer.finish(b"metadata").unwrap())
}

fn some_blocks() -> Vec<Vec<u8>> {
    vec![vec![1; 30], Vec::new(), (0..=25).collect(), vec![9]]
}

#[test]
fn blocks_and_metadata_come_back() {
    let directory = tempfile::tempdir().unwrap();
    for blocks in [Vec::new(), some_blocks(), vec![Vec::new()]] {
        let (path, summary) = write(directory.path(), &blocks);
        let file = BlockFile::open(&LocalFileSystem, &path, KIND).unwrap();
        assert_eq!(file.summary(), summary);
        assert_eq!(file.metadata(), b"metadata");
        assert_eq!(file.block_count() as usize, blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            assert_eq!(file.block(BlockNumber(number as u32)).unwrap(), block);
        }
        assert!(file.block(BlockNumber(blocks.len() as u32)).is_err());
        assert!(file.verify_all().is_empty());
    }
}

#[test]
fn every_flipped_bit_is_found_near_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = write(directory.path(), &some_blocks());
    let whole = std::fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &damaged).unwrap();
        let damage = match BlockFile::open(&LocalFileSystem, &path, KIND) {
            Ok(file) => file.verify_all(),
            Err(error) => vec![error],
        };
        match &damage[..] {
            [
                Error::Corrupt {
                    path: named,
                    offset,
                    ..
                },
            ] => {
                assert_eq!(named, &path);
                assert!(*offset <= bit as u64 / 8);
            }
            [Error::FormatVersion { .. }] => assert!((8..12).contains(&(bit / 8))),
            other => panic!("bit {bit}: {other:?}"),
        }
    }
}

#[test]
fn a_damaged_block_is_refused_and_the_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = write(directory.path(), &some_blocks());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[HEADER_BYTES + 35] ^= 4;
    std::fs::write(&path, &bytes).unwrap();
    let file = BlockFile::open(&LocalFileSystem, &path, KIND).unwrap();
    assert!(file.block(BlockNumber(0)).is_ok());
    for _ in 0..2 {
        let Err(Error::Corrupt { offset, .. }) = file.block(BlockNumber(2)) else {
            panic!("the damage was not seen");
        };
        assert_eq!(offset, HEADER_BYTES as u64 + 30);
    }
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = write(directory.path(), &some_blocks());
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(
            BlockFile::open(&LocalFileSystem, &path, KIND),
            Err(Error::Corrupt { .. })
        ));
    }
}

#[test]
fn another_version_and_another_kind_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = write(directory.path(), &some_blocks());
    assert!(matches!(
        BlockFile::open(&LocalFileSystem, &path, FileKind(*b"ELSE")),
        Err(Error::Corrupt { offset: 12, .. })
    ));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 7;
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        BlockFile::open(&LocalFileSystem, &path, KIND),
        Err(Error::FormatVersion { found: 7, .. })
    ));
}
