//! The statistics file: a block file of one block, LEB128 numbers in a fixed order.
//!
//! ```text
//! quads | distinct subjects | distinct objects | distinct graphs | rest: subjects, quads
//! number of predicates, then for each: id, quads, distinct subjects, distinct objects
//! number of sets, then for each: subjects, number of predicates, then for each: id, quads
//! ```

use std::path::Path;

use orrery_term::TermId;

use super::{CharacteristicSet, PredicateStatistics, RestOfSets, Statistics};
use crate::files::block_file::{BlockFile, BlockFileWriter, BlockNumber, FileKind, FileSummary};
use crate::files::io::FileSystem;
use crate::{Error, Result, files::varint};

/// Statistics in a block file.
pub(crate) const STATISTICS_KIND: FileKind = FileKind(*b"STAT");

/// Writes the file.
pub(crate) fn write(
    statistics: &Statistics,
    file_system: &dyn FileSystem,
    path: &Path,
) -> Result<FileSummary> {
    let mut file = BlockFileWriter::create(file_system, path, STATISTICS_KIND)?;
    file.append(&encode(statistics))?;
    file.finish(&[])
}

/// Reads the statistics from their file.
pub(crate) fn read(file: &BlockFile) -> Result<Statistics> {
    let block = BlockNumber(0);
    decode(file.block(block)?).ok_or_else(|| {
        let offset = file.block_offset(block);
        Error::corrupt(file.path(), offset, "the statistics cannot be decoded")
    })
}

fn encode(statistics: &Statistics) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |number: u64| varint::write(number, &mut bytes);
    put(statistics.quads);
    put(statistics.distinct_subjects);
    put(statistics.distinct_objects);
    put(statistics.distinct_graphs);
    put(statistics.rest.subjects);
    put(statistics.rest.quads);
    put(statistics.predicates.len() as u64);
    for (id, figures) in &statistics.predicates {
        put(id.bits());
        put(figures.quads);
        put(figures.distinct_subjects);
        put(figures.distinct_objects);
    }
    put(statistics.characteristic_sets.len() as u64);
    for set in &statistics.characteristic_sets {
        put(set.subjects);
        put(set.predicates.len() as u64);
        for (id, quads) in &set.predicates {
            put(id.bits());
            put(*quads);
        }
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<Statistics> {
    let bytes = &mut bytes;
    let mut statistics = Statistics {
        quads: varint::read(bytes)?,
        distinct_subjects: varint::read(bytes)?,
        distinct_objects: varint::read(bytes)?,
        distinct_graphs: varint::read(bytes)?,
        rest: RestOfSets {
            subjects: varint::read(bytes)?,
            quads: varint::read(bytes)?,
        },
        ..Statistics::default()
    };
    for _ in 0..varint::read(bytes)? {
        let id = TermId::from_bits(varint::read(bytes)?);
        let figures = PredicateStatistics {
            quads: varint::read(bytes)?,
            distinct_subjects: varint::read(bytes)?,
            distinct_objects: varint::read(bytes)?,
        };
        statistics.predicates.push((id, figures));
    }
    for _ in 0..varint::read(bytes)? {
        let subjects = varint::read(bytes)?;
        let predicates = (0..varint::read(bytes)?)
            .map(|_| {
                let id = TermId::from_bits(varint::read(bytes)?);
                Some((id, varint::read(bytes)?))
            })
            .collect::<Option<_>>()?;
        statistics.characteristic_sets.push(CharacteristicSet {
            predicates,
            subjects,
        });
    }
    bytes
        .is_empty()
        .then(|| statistics.with_sets_by_predicate())
}

#[cfg(test)]
pub(super) fn round_trip(statistics: &Statistics) -> Option<Statistics> {
    decode(&encode(statistics))
}
