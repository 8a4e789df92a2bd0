//! Spilled groups: partitions by key on disk.
//!
//! ```text
//! table full -> states -> part 0 .. part 15      level 1, by four bits of the keys' hash
//!                           | read: a table of its own, which has 1/16 of the groups
//!                           table full -> states -> part 0 .. part 15      level 2, by the next four bits
//! ```
//!
//! A group's states are all in one part, in the order in which they were written. So what has to
//! fit into memory at a time is never more than one group, however little there is: more memory
//! only means fewer files.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{SchemaRef, UInt64Type};
use datafusion_common::Result;
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_physical_plan::metrics::SpillMetrics;
use datafusion_physical_plan::spill::SpillManager;

use crate::spill_file::{OpenFile, Written, read};

/// Bits of the hash by which groups are divided at a time.
const PART_BITS: usize = 4;
const PARTS: usize = 1 << PART_BITS;
/// So often groups can be divided.
const LEVELS_MAX: usize = u64::BITS as usize / PART_BITS;
/// Stands for the unbound key; no term has this id.
const UNBOUND: u64 = 0;

/// A part of the groups that was written and waits to be read.
struct Part {
    file: Written,
    /// How often its groups were divided.
    level: usize,
}

/// The parts of one execution; see the module's documentation.
pub(super) struct GroupParts {
    manager: SpillManager,
    /// Columns of the keys, which are the first ones.
    keys: usize,
    /// Those that are written now, if some are.
    open: Option<Vec<Option<OpenFile>>>,
    waiting: Vec<Part>,
    /// Of what is read now; 0 is the input.
    level: usize,
}

impl GroupParts {
    /// Of states with these columns, the first of which are keys.
    pub(super) fn new(
        env: Arc<RuntimeEnv>,
        metrics: SpillMetrics,
        schema: SchemaRef,
        keys: usize,
    ) -> Self {
        Self {
            manager: SpillManager::new(env, metrics, schema),
            keys,
            open: None,
            waiting: Vec::new(),
            level: 0,
        }
    }

    /// Whether what is read now can be divided further.
    pub(super) fn can_divide(&self) -> bool {
        self.level < LEVELS_MAX
    }

    /// Whether some of what is read now was written.
    pub(super) fn is_writing(&self) -> bool {
        self.open.is_some()
    }

    /// Writes states, each to the part of its group.
    pub(super) fn append(&mut self, states: &RecordBatch) -> Result<()> {
        let mut rows: [Vec<u32>; PARTS] = Default::default();
        for (row, part) in self.parts_of(states).into_iter().enumerate() {
            rows[part].push(row as u32);
        }
        let open = self
            .open
            .get_or_insert_with(|| (0..PARTS).map(|_| None).collect());
        for (file, rows) in open.iter_mut().zip(rows) {
            if rows.is_empty() {
                continue;
            }
            let file = match file {
                Some(file) => file,
                None => file.insert(OpenFile::create(&self.manager, "groups")?),
            };
            file.append(&take_record_batch(states, &UInt32Array::from(rows))?)?;
        }
        Ok(())
    }

    /// Ends what is written: it waits to be read.
    pub(super) fn end_writing(&mut self) -> Result<()> {
        let level = self.level + 1;
        for mut file in self.open.take().into_iter().flatten().flatten() {
            let file = file.finish()?;
            self.waiting.push(Part { file, level });
        }
        Ok(())
    }

    /// The next part that waits.
    pub(super) fn next_part(&mut self) -> Result<Option<SendableRecordBatchStream>> {
        let Some(part) = self.waiting.pop() else {
            return Ok(None);
        };
        self.level = part.level;
        read(&self.manager, part.file).map(Some)
    }

    /// The part of each row's group, among those of the present level.
    fn parts_of(&self, states: &RecordBatch) -> Vec<usize> {
        let mut hashes = vec![0_u64; states.num_rows()];
        for column in states.columns().iter().take(self.keys) {
            let column = column.as_primitive::<UInt64Type>();
            for (row, hash) in hashes.iter_mut().enumerate() {
                let key = match column.is_valid(row) {
                    true => column.value(row),
                    false => UNBOUND,
                };
                *hash = mixed(*hash ^ key);
            }
        }
        let shift = self.level * PART_BITS;
        let part = |hash: u64| (hash >> shift) as usize % PARTS;
        hashes.into_iter().map(part).collect()
    }
}

/// A number in which each bit follows from all of another's (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
