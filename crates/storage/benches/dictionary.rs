//! Size and speed of a dictionary of the BSBM terms:
//! `cargo bench -p orrery-storage --bench dictionary`.
//!
//! Takes the terms of `$ORRERY_SHARED/bsbm/bsbm-1m.nt.zst`; says so and ends where that is not
//! there. Prints one line per figure; encoding is measured as wall time with one encoding thread
//! beside the caller's.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use orrery_storage::io::LocalFileSystem;
use orrery_storage::{Dictionary, DictionaryWriter};
use orrery_term::{Term, inline, write_key};

/// Look-ups per figure.
const LOOK_UPS: u64 = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    let shared = std::env::var_os("ORRERY_SHARED").unwrap_or_else(|| "../shared".into());
    let source = PathBuf::from(shared).join("bsbm/bsbm-1m.nt.zst");
    if !source.exists() {
        println!("skipped: {} is not there", source.display());
        return Ok(());
    }
    let keys = keys(&source)?;
    let (iris, literals) = keys.split_at(keys.partition_point(|key| key[0] == b'I'));
    let directory = tempfile::tempdir()?;
    for (name, keys) in [("IRIs", iris), ("literals", literals), ("all", &keys)] {
        measure(name, keys, directory.path())?;
    }
    Ok(())
}

/// The distinct terms that do not fit into an id, in order.
fn keys(source: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let text = zstd::stream::decode_all(std::fs::File::open(source)?)?;
    let mut keys = BTreeSet::new();
    let mut key = Vec::new();
    for line in std::str::from_utf8(&text)?.lines() {
        let mut rest = line;
        while let Some((term, after)) = next_term(rest) {
            rest = after;
            if inline(&term).is_none() {
                key.clear();
                write_key(&term, &mut key);
                keys.insert(key.clone());
            }
        }
    }
    Ok(keys.into_iter().collect())
}

/// Cuts the next term off a line; escapes are left as they are, that changes no figure.
fn next_term(line: &str) -> Option<(Term<'_>, &str)> {
    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix('<') {
        let (iri, rest) = rest.split_once('>')?;
        return Some((Term::iri(iri), rest));
    }
    let (lexical, rest) = line.strip_prefix('"')?.split_once('"')?;
    if let Some(rest) = rest.strip_prefix("^^<") {
        let (datatype, rest) = rest.split_once('>')?;
        return Some((Term::typed(lexical, datatype), rest));
    }
    if let Some(rest) = rest.strip_prefix('@') {
        let (tag, rest) = rest.split_once(' ')?;
        return Some((Term::language(lexical, tag), rest));
    }
    Some((Term::string(lexical), rest))
}

fn measure(name: &str, keys: &[Vec<u8>], directory: &Path) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut writer = DictionaryWriter::create_with_threads(&LocalFileSystem, directory, 1)?;
    for key in keys {
        writer.push(key)?;
    }
    let summary = writer.finish()?;
    let seconds = start.elapsed().as_secs_f64();
    let (terms, plain, stored) = (
        summary.terms as f64,
        summary.plain_bytes as f64,
        summary.file_bytes as f64,
    );
    println!(
        "{name}: {} terms, {:.1} bytes each, stored {:.1} (ratio {:.2}), written at {:.0} MB/s",
        summary.terms,
        plain / terms,
        stored / terms,
        plain / stored,
        plain / seconds / 1e6,
    );

    let start = Instant::now();
    let dictionary = Dictionary::open(&LocalFileSystem, directory)?;
    println!("  open: {:.0} us", start.elapsed().as_secs_f64() * 1e6);
    let count = keys.len() as u64;
    let mut sum = 0;
    let per = |start: Instant, times: u64| start.elapsed().as_nanos() as u64 / times;
    let start = Instant::now();
    let mut cursor = dictionary.iter(0);
    while let Some(key) = cursor.next()? {
        sum += key.len();
    }
    println!("  all in order: {} ns a key", per(start, count));

    let mut ranks: Vec<u64> = (0..LOOK_UPS).map(|n| scrambled(n) % count).collect();
    let mut out = Vec::new();
    let start = Instant::now();
    for &rank in &ranks {
        dictionary.key(rank, &mut out)?;
        sum += out.len();
    }
    println!("  key, random: {} ns", per(start, LOOK_UPS));
    let start = Instant::now();
    for &rank in &ranks {
        sum += usize::from(dictionary.find(&keys[rank as usize])?.is_some());
    }
    println!("  find, random: {} ns", per(start, LOOK_UPS));
    ranks.sort_unstable();
    let start = Instant::now();
    dictionary.keys(&ranks, |_, key| sum += key.len())?;
    println!(
        "  keys, a batch of {LOOK_UPS}: {} ns each",
        per(start, LOOK_UPS)
    );
    assert!(sum > 0);
    Ok(())
}

fn scrambled(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}
