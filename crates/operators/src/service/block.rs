//! A block of input rows that one request asks for.
//!
//! A block ends when it has enough distinct keys. Its rows are split into parts, one request each:
//! the rows of a part have the same endpoint, and bind the same of the shared variables to terms
//! that can be sent.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::concat_batches;
use datafusion_common::Result;
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use hashbrown::{HashMap, HashSet};
use orrery_term::{Term, TermId, TermKind};
use spargebra::term::GroundTerm;

use super::compiled::{CompiledService, SharedColumn};
use super::query::sendable;
use super::specification::Endpoint;
use crate::solutions::{bits, id_columns};

/// Rows of one block; many rows may have the same key.
const BLOCK_ROWS_MAX: usize = 1 << 16;
/// The first block has this part of the keys of a full one.
const FIRST_BLOCK_DIVISOR: usize = 10;

/// Cuts the input into blocks.
pub(super) struct RequestBlocks {
    /// The input; `None` is one row without variables.
    input: Option<SendableRecordBatchStream>,
    is_ended: bool,
    /// What the last block left of a batch.
    rest: Option<RecordBatch>,
    keys_max: usize,
}

/// Some rows of the input, and how they are asked for.
pub(super) struct RequestBlock {
    pub(super) rows: Arc<BlockRows>,
    pub(super) parts: VecDeque<BlockPart>,
}

/// The rows of a block, for as long as an answer is joined to them.
pub(super) struct BlockRows {
    /// The columns of the input.
    pub(super) columns: Vec<UInt64Array>,
    #[expect(dead_code, reason = "holds the memory of the rows and their keys")]
    reservation: MemoryReservation,
}

/// Rows for one request.
pub(super) struct BlockPart {
    /// Whom to ask; `None` where the row's term is no IRI.
    pub(super) endpoint: Option<Arc<str>>,
    /// The value of the endpoint's variable.
    /// The shared variables whose terms are sent.
    pub(super) sent: Vec<SharedColumn>,
    /// The distinct keys, one term per sent variable.
    pub(super) keys: Vec<Vec<GroundTerm>>,
    /// The rows of each key.
    pub(super) rows: HashMap<Box<[u64]>, Vec<u32>>,
}

impl RequestBlocks {
    pub(super) fn new(input: Option<SendableRecordBatchStream>, keys_max: usize) -> Self {
        Self {
            input,
            is_ended: false,
            rest: None,
            keys_max: (keys_max / FIRST_BLOCK_DIVISOR).max(1),
        }
    }

    /// The next block, which holds memory of its own beside `reservation`; `None` after the last.
    pub(super) async fn next(
        &mut self,
        plan: &CompiledService,
        reservation: &MemoryReservation,
    ) -> Result<Option<RequestBlock>> {
        let Some(input) = &mut self.input else {
            let is_first = !std::mem::replace(&mut self.is_ended, true);
            return Ok(is_first.then(|| RequestBlock::of_nothing(plan, reservation.new_empty())));
        };
        let reservation = reservation.new_empty();
        let mut seen: HashSet<Box<[u64]>> = HashSet::new();
        let (mut batches, mut rows) = (Vec::new(), 0);
        while !self.is_ended {
            let batch = match self.rest.take() {
                Some(batch) => batch,
                None => match input.next().await {
                    Some(batch) => batch?,
                    None => {
                        self.is_ended = true;
                        break;
                    }
                },
            };
            let room = BLOCK_ROWS_MAX - rows;
            let taken = taken(plan, &batch, &mut seen, self.keys_max)?.min(room);
            reservation.try_grow(taken * (batch.num_columns() + 2) * size_of::<u64>())?;
            rows += taken;
            if taken < batch.num_rows() {
                batches.push(batch.slice(0, taken));
                self.rest = Some(batch.slice(taken, batch.num_rows() - taken));
                break;
            }
            batches.push(batch);
        }
        let Some(first) = batches.first() else {
            return Ok(None);
        };
        self.keys_max = (self.keys_max * 2).min(plan.options.block_keys_max.max(1));
        let rows = concat_batches(&first.schema(), &batches)?;
        RequestBlock::new(plan, &rows, reservation).map(Some)
    }
}

/// How many rows of a batch fit, given the keys that were seen before.
fn taken(
    plan: &CompiledService,
    batch: &RecordBatch,
    seen: &mut HashSet<Box<[u64]>>,
    keys_max: usize,
) -> Result<usize> {
    let columns = id_columns(batch)?;
    let keyed = plan.key_columns();
    for row in 0..batch.num_rows() {
        let key: Box<[u64]> = keyed.iter().map(|&at| bits(&columns[at], row)).collect();
        if seen.len() < keys_max {
            seen.insert(key);
        } else if !seen.contains(&key) {
            return Ok(row);
        }
    }
    Ok(batch.num_rows())
}

/// What decides to which part a row belongs.
type PartKey = (u64, Box<[usize]>);

impl RequestBlock {
    /// One row without variables.
    fn of_nothing(plan: &CompiledService, reservation: MemoryReservation) -> Self {
        let mut rows = HashMap::new();
        rows.insert(Box::from([]), vec![0]);
        let endpoint = match &plan.specification.endpoint {
            Endpoint::Iri(iri) => Some(Arc::clone(iri)),
            Endpoint::Variable(_) => None,
        };
        let part = BlockPart {
            endpoint,
            sent: Vec::new(),
            keys: Vec::new(),
            rows,
        };
        let columns = Vec::new();
        Self {
            rows: Arc::new(BlockRows {
                columns,
                reservation,
            }),
            parts: VecDeque::from([part]),
        }
    }

    fn new(
        plan: &CompiledService,
        rows: &RecordBatch,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let columns = id_columns(rows)?;
        // Each distinct term is looked at once.
        let mut terms: HashMap<u64, Option<GroundTerm>> = HashMap::new();
        let mut parts: HashMap<PartKey, BlockPart> = HashMap::new();
        let mut order: Vec<PartKey> = Vec::new();
        #[expect(clippy::cast_possible_truncation, reason = "BLOCK_ROWS_MAX rows")]
        for row in 0..rows.num_rows() as u32 {
            let at = row as usize;
            let endpoint = plan
                .endpoint_column
                .map_or(u64::MAX, |c| bits(&columns[c], at));
            let mut sent: Vec<usize> = Vec::new();
            let mut key: Vec<u64> = Vec::new();
            // A blank node of ours is none of theirs.
            let mut is_hopeless = false;
            if plan.specification.sends_keys {
                for (number, shared) in plan.shared.iter().enumerate() {
                    let id = bits(&columns[shared.input], at);
                    if !terms.contains_key(&id) {
                        let term = written(plan, id)?;
                        reservation.try_grow(term.as_ref().map_or(0, text_bytes) + 64)?;
                        terms.insert(id, term);
                    }
                    if terms.get(&id).is_some_and(Option::is_some) {
                        sent.push(number);
                        key.push(id);
                    } else if TermId::from_bits(id).kind() == TermKind::BlankNode {
                        is_hopeless |= plan.specification.variables[shared.answer].is_certain;
                    }
                }
            }
            if is_hopeless {
                continue;
            }
            let part_key: PartKey = (endpoint, sent.into());
            let part = match parts.entry(part_key.clone()) {
                hashbrown::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                hashbrown::hash_map::Entry::Vacant(entry) => {
                    order.push(part_key.clone());
                    entry.insert(BlockPart::new(plan, endpoint, &part_key.1)?)
                }
            };
            if let Some(rows) = part.rows.get_mut(key.as_slice()) {
                rows.push(row);
                continue;
            }
            let written = key.iter().filter_map(|id| terms.get(id).cloned().flatten());
            part.keys.push(written.collect());
            part.rows.insert(key.into(), vec![row]);
        }
        let parts = order.iter().filter_map(|key| parts.remove(key)).collect();
        Ok(Self {
            rows: Arc::new(BlockRows {
                columns,
                reservation,
            }),
            parts,
        })
    }
}

impl BlockPart {
    fn new(plan: &CompiledService, endpoint: u64, sent: &[usize]) -> Result<Self> {
        let iri = match &plan.specification.endpoint {
            Endpoint::Iri(iri) => Some(Arc::clone(iri)),
            Endpoint::Variable(_) if endpoint == u64::MAX => None,
            Endpoint::Variable(_) => match plan.context.term(TermId::from_bits(endpoint))? {
                Term::Iri(iri) => Some(Arc::from(iri.as_ref())),
                _ => None,
            },
        };
        Ok(Self {
            endpoint: iri,
            sent: sent.iter().map(|&at| plan.shared[at].clone()).collect(),
            keys: Vec::new(),
            rows: HashMap::new(),
        })
    }

    /// All rows, in no order.
    pub(super) fn all_rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.values().flatten().copied()
    }
}

fn written(plan: &CompiledService, id: u64) -> Result<Option<GroundTerm>> {
    if id == u64::MAX {
        return Ok(None);
    }
    Ok(sendable(&plan.context.term(TermId::from_bits(id))?))
}

fn text_bytes(term: &GroundTerm) -> usize {
    match term {
        GroundTerm::NamedNode(node) => node.as_str().len(),
        GroundTerm::Literal(literal) => literal.value().len(),
        GroundTerm::Triple(_) => 0,
    }
}
