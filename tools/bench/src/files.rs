//! Input files, compressed or not.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// A file, through gzip if its name ends in `.gz`.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<BufReader<Box<dyn Read + Send>>> {
    let file = File::open(path)?;
    let is_compressed = path.extension().is_some_and(|extension| extension == "gz");
    let input: Box<dyn Read + Send> = match is_compressed {
        true => Box::new(MultiGzDecoder::new(BufReader::new(file))),
        false => Box::new(file),
    };
    Ok(BufReader::new(input))
}
