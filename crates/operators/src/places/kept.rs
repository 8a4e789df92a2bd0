//! The build side of a spatial join: rows by geometry, geometries by rectangle.

use std::time::Instant;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::RandomState;
use futures::StreamExt;
use geo::Rect;
use hashbrown::HashMap;
use orrery_geo::{Notation, Shape, from_text};
use orrery_runtime::Pace;
use orrery_term::{LiteralKind, Term, TermId};
use rstar::{AABB, RTree, RTreeObject};

use super::condition::Nearness;
use crate::context::QueryContext;
use crate::solutions::id_columns;

/// What a row needs beside its columns: its shape, its place among those of the shape, and its copy
/// while a column is put together.
const ROW_BYTES: usize = size_of::<u64>() + 2 * size_of::<u32>();
/// What a shape needs beside its points: its places in the list, the table and the tree.
const SHAPE_BYTES: usize = size_of::<Shape>() + 3 * size_of::<Entry>() + size_of::<(u64, u32)>();
const POINT_BYTES: usize = size_of::<[f64; 2]>();

/// A rectangle of the tree, and whose it is.
struct Entry {
    bounds: AABB<[f64; 2]>,
    shape: u32,
}

impl RTreeObject for Entry {
    type Envelope = AABB<[f64; 2]>;

    fn envelope(&self) -> Self::Envelope {
        self.bounds
    }
}

fn envelope(bounds: &Rect, turn: f64) -> AABB<[f64; 2]> {
    let (least, most) = (bounds.min(), bounds.max());
    AABB::from_corners([least.x + turn, least.y], [most.x + turn, most.y])
}

/// Rows whose shapes are read at once: while they are used they are not counted as memory.
const PIECE_ROWS: usize = 8_192;

/// The first rows of a batch, and what is left of it.
pub(super) fn first_piece(batch: RecordBatch) -> (RecordBatch, Option<RecordBatch>) {
    let rows = batch.num_rows();
    match rows <= PIECE_ROWS {
        true => (batch, None),
        false => {
            let rest = batch.slice(PIECE_ROWS, rows - PIECE_ROWS);
            (batch.slice(0, PIECE_ROWS), Some(rest))
        }
    }
}

/// The shapes of a column of ids, each once, and which a row has.
pub(super) struct ReadShapes {
    pub(super) shapes: Vec<Shape>,
    /// None of what is no geometry.
    pub(super) of_rows: Vec<Option<u32>>,
}

/// Reads the shapes of a column.
pub(super) fn read_shapes(ids: &UInt64Array, context: &QueryContext) -> Result<ReadShapes> {
    let mut distinct: Vec<TermId> = ids.iter().flatten().map(TermId::from_bits).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let mut shapes = Vec::new();
    let mut places = vec![None; distinct.len()];
    let terms = context.expressions().terms(&distinct, |place, term| {
        if let Some(shape) = shape_of(&term) {
            places[place] = Some(shapes.len() as u32);
            shapes.push(shape);
        }
    });
    terms.map_err(|error| DataFusionError::External(Box::new(error)))?;
    let of_row = |id: Option<u64>| {
        let place = distinct.binary_search(&TermId::from_bits(id?)).ok()?;
        places[place]
    };
    Ok(ReadShapes {
        of_rows: ids.iter().map(of_row).collect(),
        shapes,
    })
}

fn shape_of(term: &Term<'_>) -> Option<Shape> {
    let Term::Literal(literal) = term else {
        return None;
    };
    let LiteralKind::Typed(datatype) = &literal.kind else {
        return None;
    };
    from_text(&literal.lexical, Notation::of_datatype(datatype)?)
}

/// See the module.
pub(super) struct KeptPlaces {
    pub(super) columns: Vec<UInt64Array>,
    pub(super) shapes: Vec<Shape>,
    /// Rows by their shapes: those of shape `n` are from `starts[n]` to before `starts[n + 1]`.
    starts: Vec<u32>,
    rows: Vec<u32>,
    tree: RTree<Entry>,
    /// Shapes without a rectangle: of planes, and empty ones.
    others: Vec<u32>,
    _reservation: MemoryReservation,
}

impl KeptPlaces {
    /// Collects a side to its end.
    pub(super) async fn collect(
        mut input: SendableRecordBatchStream,
        column: usize,
        nearness: Nearness,
        context: &QueryContext,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let mut pace = Pace::new();
        let mut batches: Vec<RecordBatch> = Vec::new();
        let mut shapes: Vec<Shape> = Vec::new();
        let mut of_rows: Vec<Option<u32>> = Vec::new();
        let mut known: HashMap<u64, u32, RandomState> = HashMap::default();
        let mut rest = None;
        loop {
            let whole = match rest.take() {
                Some(batch) => Some(batch),
                None => input.next().await.transpose()?,
            };
            let Some(whole) = whole else { break };
            let (batch, left) = first_piece(whole);
            rest = left;
            let columns = id_columns(&batch)?;
            let width = 2 * columns.len() * size_of::<u64>() + ROW_BYTES;
            reservation.try_grow(batch.num_rows() * width)?;
            let ids = &columns[column];
            let read = read_shapes(ids, context)?;
            let mut numbers: Vec<Option<u32>> = vec![None; read.shapes.len()];
            let mut fresh: Vec<Option<Shape>> = read.shapes.into_iter().map(Some).collect();
            for (row, place) in read.of_rows.iter().enumerate() {
                let Some(place) = place.map(|place| place as usize) else {
                    of_rows.push(None);
                    continue;
                };
                if numbers[place].is_none()
                    && let Some(shape) = fresh[place].take()
                {
                    let next = shapes.len() as u32;
                    let number = *known.entry(ids.value(row)).or_insert(next);
                    if number == next {
                        let points = shape.points() * POINT_BYTES;
                        reservation.try_grow(points + SHAPE_BYTES)?;
                        shapes.push(shape);
                    }
                    numbers[place] = Some(number);
                }
                of_rows.push(numbers[place]);
            }
            if of_rows.len() > u32::MAX as usize {
                let why = "a join of places with more rows on one side than fit into it";
                return Err(DataFusionError::ResourcesExhausted(why.to_owned()));
            }
            batches.push(batch);
            if pace.must_give_way(Instant::now()) {
                tokio::task::yield_now().await;
            }
        }
        Self::of_rows(
            &input.schema(),
            &batches,
            shapes,
            &of_rows,
            nearness,
            reservation,
        )
    }

    fn of_rows(
        schema: &SchemaRef,
        batches: &[RecordBatch],
        shapes: Vec<Shape>,
        of_rows: &[Option<u32>],
        nearness: Nearness,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let columns = id_columns(&concat_batches(schema, batches)?)?;
        let mut starts = vec![0_u32; shapes.len() + 1];
        for shape in of_rows.iter().flatten() {
            starts[*shape as usize + 1] += 1;
        }
        for shape in 0..shapes.len() {
            starts[shape + 1] += starts[shape];
        }
        let mut next = starts.clone();
        let mut rows = vec![0_u32; starts[shapes.len()] as usize];
        for (row, shape) in of_rows.iter().enumerate() {
            if let Some(shape) = shape {
                let place = &mut next[*shape as usize];
                rows[*place as usize] = row as u32;
                *place += 1;
            }
        }
        let (mut entries, mut others) = (Vec::with_capacity(shapes.len()), Vec::new());
        for (number, shape) in shapes.iter().enumerate() {
            let shape_number = number as u32;
            let Some(bounds) = nearness.bounds_of_kept(shape) else {
                others.push(shape_number);
                continue;
            };
            let mut enter = |turn| {
                entries.push(Entry {
                    bounds: envelope(&bounds, turn),
                    shape: shape_number,
                });
            };
            enter(0.0);
            if nearness.goes_round() {
                // It is looked for where it is written, within one turn.
                if bounds.min().x < -180.0 {
                    enter(360.0);
                }
                if bounds.max().x > 180.0 {
                    enter(-360.0);
                }
            }
        }
        Ok(Self {
            columns,
            shapes,
            starts,
            rows,
            tree: RTree::bulk_load(entries),
            others,
            _reservation: reservation,
        })
    }

    /// The shapes that the condition might hold of with this one, ascending, each once.
    pub(super) fn candidates(&self, shape: &Shape, nearness: Nearness, found: &mut Vec<u32>) {
        found.clear();
        let Some(bounds) = nearness.bounds_of_asked(shape) else {
            found.extend_from_slice(&self.others);
            return;
        };
        let mut look = |turn| {
            let near = self
                .tree
                .locate_in_envelope_intersecting(&envelope(&bounds, turn));
            found.extend(near.map(|entry| entry.shape));
        };
        look(0.0);
        if nearness.goes_round() {
            if bounds.min().x < -180.0 {
                look(360.0);
            }
            if bounds.max().x > 180.0 {
                look(-360.0);
            }
        }
        found.sort_unstable();
        found.dedup();
    }

    /// The rows of a shape.
    pub(super) fn rows_of(&self, shape: u32) -> &[u32] {
        let from = self.starts[shape as usize] as usize;
        let to = self.starts[shape as usize + 1] as usize;
        &self.rows[from..to]
    }
}
