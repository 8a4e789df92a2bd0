//! Solutions for another process: computed terms travel as terms, not as ids.
//!
//! ```text
//! note   4 bytes: terms   per term 8 bytes: its id, 4: how long its key is, the key
//!        4 bytes: tags    per language tag that the query writes, 4: how long it is, the tag
//! ```
//!
//! The query's own terms that were there when its plan was described have the same ids everywhere.
//! Each other one goes once for each partition, before the first batch that has it. Ids are in
//! columns of solutions, and at the beginning of some states of aggregates ([`ID_STATE`]).

use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray as _, LargeBinaryArray, LargeBinaryBuilder, RecordBatch, UInt64Array,
};
use arrow::datatypes::{DataType, Schema, UInt64Type};
use bytes::Bytes;
use datafusion_common::{DataFusionError, Result};
use hashbrown::{HashMap, HashSet};
use orrery_distributed::{Incoming, Outgoing, Translation};
use orrery_operators::aggregate::ID_STATE;
use orrery_operators::context::QueryContext;
use orrery_term::{LanguageTags, TermId, TermKind, parse_key, write_key};
use orrery_wire_fields::{FieldReader, FieldWriter};

/// The terms of one process's part of a query.
pub(crate) struct ForeignTerms {
    context: Arc<QueryContext>,
    /// How many of them are the same everywhere.
    common: u64,
}

impl ForeignTerms {
    pub(crate) fn new(context: &Arc<QueryContext>, common: u64) -> Arc<Self> {
        let context = Arc::clone(context);
        Arc::new(Self { context, common })
    }
}

impl Translation for ForeignTerms {
    fn outgoing(&self) -> Box<dyn Outgoing> {
        Box::new(Writer {
            context: Arc::clone(&self.context),
            common: self.common,
            sent: HashSet::new(),
            tags: 0,
        })
    }

    fn incoming(&self) -> Box<dyn Incoming> {
        Box::new(Reader {
            context: Arc::clone(&self.context),
            common: self.common,
            known: HashMap::new(),
        })
    }
}

/// Where a column has ids.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ids {
    Whole,
    AtTheBeginning,
    None,
}

fn ids_of(schema: &Schema, column: usize) -> Ids {
    let field = schema.field(column);
    match field.data_type() {
        DataType::UInt64 => Ids::Whole,
        DataType::LargeBinary if field.name().ends_with(ID_STATE) => Ids::AtTheBeginning,
        _ => Ids::None,
    }
}

/// The number of a term that is the query's own and not the same everywhere.
fn own(bits: u64, common: u64) -> Option<TermId> {
    let id = TermId::from_bits(bits);
    (id.kind() == TermKind::QueryLocal && id.payload() >= common).then_some(id)
}

fn first_id(state: &[u8]) -> Option<u64> {
    let (head, _) = state.split_first_chunk::<8>()?;
    Some(u64::from_le_bytes(*head))
}

/// Calls `f` with all ids of a column.
fn for_each_id(column: &ArrayRef, ids: Ids, mut f: impl FnMut(u64)) {
    match ids {
        Ids::Whole => column
            .as_primitive::<UInt64Type>()
            .iter()
            .flatten()
            .for_each(f),
        Ids::AtTheBeginning => {
            let states = column.as_binary::<i64>().iter().flatten();
            states.filter_map(first_id).for_each(&mut f);
        }
        Ids::None => {}
    }
}

struct Writer {
    context: Arc<QueryContext>,
    common: u64,
    sent: HashSet<u64>,
    /// How many tags were noted when they were sent.
    tags: usize,
}

impl Outgoing for Writer {
    fn note(&mut self, batch: &RecordBatch) -> Result<Bytes> {
        let mut new = Vec::new();
        for (at, column) in batch.columns().iter().enumerate() {
            for_each_id(column, ids_of(&batch.schema(), at), |bits| {
                if own(bits, self.common).is_some() && self.sent.insert(bits) {
                    new.push(bits);
                }
            });
        }
        let tags = match self.context.own_language_tags() {
            Some(_) => self.context.expressions().noted_language_tags(),
            None => Arc::default(),
        };
        let tags: Vec<&str> = tags.iter().collect();
        if new.is_empty() && tags.len() == self.tags {
            return Ok(Bytes::new());
        }
        let mut note = FieldWriter::default();
        note.count(new.len()).map_err(damaged)?;
        let mut key = Vec::new();
        for bits in new {
            let term = self
                .context
                .term(TermId::from_bits(bits))
                .map_err(external)?;
            key.clear();
            write_key(&term, &mut key);
            note.number(bits);
            note.bytes(&key).map_err(damaged)?;
        }
        self.tags = tags.len();
        note.count(tags.len()).map_err(damaged)?;
        for tag in tags {
            note.bytes(tag.as_bytes()).map_err(damaged)?;
        }
        Ok(note.finish())
    }
}

fn damaged(error: impl Display) -> DataFusionError {
    let message = format!("a note of terms: {error}");
    orrery_distributed::Error::Damaged(message).into()
}

fn external(error: orrery_operators::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

struct Reader {
    context: Arc<QueryContext>,
    common: u64,
    /// The ids of the other process, and what they are here.
    known: HashMap<u64, u64>,
}

impl Incoming for Reader {
    fn learn(&mut self, note: &Bytes) -> Result<()> {
        if note.is_empty() {
            return Ok(());
        }
        let mut fields = FieldReader::new(note.clone());
        for _ in 0..fields.count().map_err(damaged)? {
            let bits = fields.number().map_err(damaged)?;
            let key = fields.bytes().map_err(damaged)?;
            let term =
                parse_key(&key).map_err(|error| DataFusionError::External(Box::new(error)))?;
            let id = self.context.intern(&term).map_err(external)?;
            self.known.insert(bits, id.bits());
        }
        let mut tags = Vec::new();
        for _ in 0..fields.count().map_err(damaged)? {
            let tag = fields.bytes().map_err(damaged)?;
            tags.push(String::from_utf8_lossy(&tag).into_owned());
        }
        let tags: LanguageTags = tags.iter().map(String::as_str).collect();
        self.context.note_language_tags(&tags);
        Ok(())
    }

    fn batch(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let schema = batch.schema();
        let has_own = |(at, column): (usize, &ArrayRef)| {
            let mut found = false;
            for_each_id(column, ids_of(&schema, at), |bits| {
                found |= own(bits, self.common).is_some();
            });
            found
        };
        if !batch.columns().iter().enumerate().any(has_own) {
            return Ok(batch);
        }
        let columns = batch.columns().iter().enumerate();
        let columns = columns.map(|(at, column)| -> Result<ArrayRef> {
            Ok(match ids_of(&schema, at) {
                Ids::None => Arc::clone(column),
                Ids::Whole => {
                    let ids = column.as_primitive::<UInt64Type>();
                    let here = ids.iter().map(|id| id.map(|id| self.here(id)).transpose());
                    Arc::new(here.collect::<Result<UInt64Array>>()?)
                }
                Ids::AtTheBeginning => Arc::new(self.states(column.as_binary::<i64>())?),
            })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
    }
}

impl Reader {
    /// What an id of the other process is here.
    fn here(&self, bits: u64) -> Result<u64> {
        if own(bits, self.common).is_none() {
            return Ok(bits);
        }
        let known = self.known.get(&bits).copied();
        known.ok_or_else(|| damaged("a term came without its text"))
    }

    fn states(&self, states: &LargeBinaryArray) -> Result<LargeBinaryArray> {
        let mut made = LargeBinaryBuilder::new();
        for state in states {
            match state.map(|state| (first_id(state), state)) {
                None => made.append_null(),
                Some((None, state)) => made.append_value(state),
                Some((Some(id), state)) => {
                    let mut changed = state.to_vec();
                    changed[..8].copy_from_slice(&self.here(id)?.to_le_bytes());
                    made.append_value(changed);
                }
            }
        }
        Ok(made.finish())
    }
}
