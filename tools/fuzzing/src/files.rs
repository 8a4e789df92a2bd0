//! Fuzz targets: readers of a database's files, on an in-memory file system. Whatever is in the
//! files, opening, checking and reading them ends in an error or in data.
//!
//! Bytes at random would end at the first checksum. So they say what is changed of a good file, and
//! the checksums of what comes out are right.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use orrery_storage::block_file::{BlockFile, BlockFileWriter, BlockNumber, FileKind, FileSummary};
use orrery_storage::io::FileSystem;
use orrery_storage::io::testing::RecordingFileSystem;
use orrery_storage::log::LogReader;
use orrery_storage::{
    CommitOptions, Database, ReadView, WriterOptions, build_small_with, verify_with,
};
use orrery_term::{Term, TermId};
use serde_json::Value;

const DIRECTORY: &str = "/db";
const MANIFEST: &str = "/db/MANIFEST";
/// The last line of a manifest.
const CHECKSUM_LINE_BYTES: usize = 16;
/// The header of a block file, in which its kind stands last.
const BLOCK_HEADER_BYTES: usize = 16;
const KIND_AT: usize = 12;
/// Magic number, length and checksum of the header of a log.
const LOG_FIXED_BYTES: usize = 16;
/// Records that a log of the fuzzer's has at most.
const RECORDS_MAX: usize = 64;

/// A good database: a segment with named graphs, and commits in its log.
struct Good {
    disk: RecordingFileSystem,
    segment: Vec<PathBuf>,
    log: PathBuf,
    manifest: Vec<u8>,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| match good() {
    Ok(good) => good,
    Err(error) => panic!("the good database was not made: {error}"),
});

fn good() -> orrery_storage::Result<Good> {
    let disk = RecordingFileSystem::new();
    let shared: Arc<dyn FileSystem> = Arc::new(disk.clone());
    let iri = |name: &str, number: usize| Term::iri(format!("http://example.com/{name}{number}"));
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    let mut quads = Vec::new();
    for number in 0..300 {
        let graph = (number % 7 == 0).then(|| iri("g", number % 3));
        let subject = || iri("subject", number);
        quads.push((
            subject(),
            iri("p", 0),
            Term::typed(number.to_string(), integer),
            graph,
        ));
        let text = format!("a text that is not in an id, of number {number}");
        quads.push((subject(), iri("p", 1), Term::language(text, "en"), None));
        quads.push((subject(), iri("p", 2), iri("subject", number / 2), None));
    }
    let database = build_small_with(Arc::clone(&shared), DIRECTORY, &quads)?;
    let database = Arc::new(database);
    let writer = database.open_writer(WriterOptions::default())?;
    for number in 0..4 {
        let mut transaction = writer.begin()?;
        let predicate = transaction.intern(&iri("p", 3))?;
        let object = transaction.intern(&Term::string(format!("a new text, number {number}")))?;
        let subject = transaction.intern(&iri("subject", number))?;
        let mut quads = vec![[subject, predicate, object, TermId::DEFAULT_GRAPH]];
        transaction.insert(&mut quads)?;
        transaction.commit(CommitOptions::default())?.wait()?;
    }
    drop((writer, database));
    let files = disk.files();
    let is_below = |path: &PathBuf, folder: &str| path.to_string_lossy().contains(folder);
    let segment = files.iter().filter(|path| is_below(path, "/segment-"));
    let segment = segment.cloned().collect();
    let log = files.iter().find(|path| is_below(path, "/log/"));
    let log = log.cloned().unwrap_or_default();
    let manifest = disk.read(Path::new(MANIFEST))?;
    Ok(Good {
        disk,
        segment,
        log,
        manifest,
    })
}

fn write(disk: &RecordingFileSystem, path: &Path, bytes: &[u8]) -> orrery_storage::Result<()> {
    let mut file = disk.create(path)?;
    file.append(bytes)?;
    file.flush()
}

/// Opens, checks and reads all of it.
fn read_all(disk: &RecordingFileSystem) -> orrery_storage::Result<()> {
    let directory = Path::new(DIRECTORY);
    // What damage it finds is said in its report.
    let _ = verify_with(disk, directory, |_| {});
    let database = Database::open_with(Arc::new(disk.clone()), directory)?;
    let view = ReadView::of_process(database.snapshot());
    let mut quads = view.quads()?;
    while let Some(batch) = quads.next_batch()? {
        for quad in batch.iter() {
            let term = quad.object.as_ref().clone().into_owned();
            // Every term that is read is one that can be looked for.
            database.snapshot().term_id(&term)?;
        }
    }
    Ok(())
}

/// The JSON of a manifest, with the line of its checksum.
fn with_checksum(json: &[u8]) -> Vec<u8> {
    let line = format!("crc32c {:08x}\n", crc32c::crc32c(json));
    [json, line.as_bytes()].concat()
}

/// The bytes are the manifest.
pub(crate) fn manifest(bytes: &[u8]) {
    let disk = GOOD.disk.copy();
    let written = write(&disk, Path::new(MANIFEST), &with_checksum(bytes));
    let _ = written.and_then(|()| read_all(&disk));
}

/// The first byte chooses a file of the segment; each five that follow change one byte: its block,
/// the place there, what stands there then.
pub(crate) fn segment(bytes: &[u8]) {
    let good = &*GOOD;
    let Some((&choice, changes)) = bytes.split_first() else {
        return;
    };
    let Some(path) = good
        .segment
        .get(usize::from(choice) % good.segment.len().max(1))
    else {
        return;
    };
    let disk = good.disk.copy();
    // A file that cannot be written so is none of the segment's.
    if let Ok(summary) = change_blocks(&disk, path, changes) {
        let json = &good.manifest[..good.manifest.len() - CHECKSUM_LINE_BYTES];
        let named = name_file(json, path, summary);
        let written = write(&disk, Path::new(MANIFEST), &with_checksum(&named));
        let _ = written.and_then(|()| read_all(&disk));
    }
}

fn change_blocks(
    disk: &RecordingFileSystem,
    path: &Path,
    changes: &[u8],
) -> orrery_storage::Result<FileSummary> {
    let whole = disk.read(path)?;
    let mut kind = [0; BLOCK_HEADER_BYTES - KIND_AT];
    kind.copy_from_slice(&whole[KIND_AT..BLOCK_HEADER_BYTES]);
    let kind = FileKind(kind);
    let file = BlockFile::open(disk, path, kind)?;
    let mut blocks = Vec::new();
    for number in 0..file.block_count() {
        blocks.push(file.block(BlockNumber(number))?.to_vec());
    }
    // As if it were one more.
    blocks.push(file.metadata().to_vec());
    for change in changes.chunks_exact(5) {
        let at = usize::from(change[0]) % blocks.len();
        let block = &mut blocks[at];
        let place = u32::from_le_bytes([change[1], change[2], change[3], 0]) as usize;
        let place = place % block.len().max(1);
        if let Some(byte) = block.get_mut(place) {
            *byte = change[4];
        }
    }
    let metadata = blocks.pop().unwrap_or_default();
    let mut writer = BlockFileWriter::create(disk, path, kind)?;
    for block in &blocks {
        writer.append(block)?;
    }
    writer.finish(&metadata)
}

/// The manifest with the length and the checksum that a file has now.
fn name_file(json: &[u8], path: &Path, summary: FileSummary) -> Vec<u8> {
    let Ok(mut manifest) = serde_json::from_slice::<Value>(json) else {
        return json.to_vec();
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    set_entry(&mut manifest, &name, summary);
    let mut bytes = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn set_entry(value: &mut Value, name: &str, summary: FileSummary) {
    match value {
        Value::Object(fields) => {
            let is_entry = fields.get("name").is_some_and(|found| *found == name);
            if is_entry && fields.contains_key("crc32c") {
                fields.insert("bytes".to_owned(), summary.bytes.into());
                fields.insert("crc32c".to_owned(), summary.crc.into());
            }
            fields
                .values_mut()
                .for_each(|value| set_entry(value, name, summary));
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| set_entry(value, name, summary)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Two bytes are the length of what a record has behind its checksum, which follows; and so on. The
/// first byte says how many bytes the end lacks.
pub(crate) fn log(bytes: &[u8]) {
    let good = &*GOOD;
    let Ok(whole) = good.disk.read(&good.log) else {
        return;
    };
    let Some((&missing, mut rest)) = bytes.split_first() else {
        return;
    };
    let body_bytes = u32::from_le_bytes([whole[8], whole[9], whole[10], whole[11]]) as usize;
    let salt = &whole[LOG_FIXED_BYTES + 4..LOG_FIXED_BYTES + 8];
    let salt = u32::from_le_bytes([salt[0], salt[1], salt[2], salt[3]]);
    let mut written = whole[..LOG_FIXED_BYTES + body_bytes].to_vec();
    for _ in 0..RECORDS_MAX {
        let Some((length, after)) = rest.split_first_chunk::<2>() else {
            break;
        };
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        let (content, after) = after.split_at(length);
        written.extend_from_slice(&(length as u32).to_le_bytes());
        written.extend_from_slice(&crc32c::crc32c_append(salt, content).to_le_bytes());
        written.extend_from_slice(content);
        rest = after;
    }
    written.truncate(written.len() - usize::from(missing).min(written.len()));
    let disk = good.disk.copy();
    if write(&disk, &good.log, &written).is_err() {
        return;
    }
    if let Ok(mut reader) = LogReader::open(&disk, &good.log) {
        while let Ok(Some(_)) = reader.next_record() {}
        let _ = reader.end();
    }
    let _ = read_all(&disk);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length and checksum of a record.
    const FRAME_BYTES: usize = 8;

    #[test]
    fn what_is_not_changed_is_read() {
        let good = &*GOOD;
        assert!(good.segment.len() > 5, "{:?}", good.segment);
        read_all(&good.disk.copy()).unwrap();
        for choice in 0..good.segment.len() {
            let disk = good.disk.copy();
            let path = &good.segment[choice];
            let summary = change_blocks(&disk, path, &[]).unwrap();
            let json = &good.manifest[..good.manifest.len() - CHECKSUM_LINE_BYTES];
            let named = name_file(json, path, summary);
            write(&disk, Path::new(MANIFEST), &with_checksum(&named)).unwrap();
            read_all(&disk).unwrap();
        }
    }

    #[test]
    fn the_records_of_a_good_log_are_read() {
        let good = &*GOOD;
        let whole = good.disk.read(&good.log).unwrap();
        let mut reader = LogReader::open(&good.disk, &good.log).unwrap();
        let mut input = vec![0];
        while let Some(record) = reader.next_record().unwrap() {
            let bytes = &whole[record.start as usize + FRAME_BYTES..record.end as usize];
            input.extend_from_slice(&u16::try_from(bytes.len()).unwrap().to_le_bytes());
            input.extend_from_slice(bytes);
        }
        assert!(input.len() > 100);
        log(&input);
    }
}
