//! GeoSPARQL's aggregates: one geometry from those of a group.
//!
//! What is no geometry, and what does not go with the others, is an error, which makes the group's
//! result unbound; so does a group of none. The shapes are kept; where some stand for all in what
//! comes later (`PlacesAggregate::shortened`), they are put together from time to time.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion_common::Result;
use orrery_expressions::Value;
use orrery_expressions::columns::{Operand, Reading, intern_value, read_ids};
use orrery_geo::{Notation, PlacesAggregate, Shape, from_text, literal_of};
use orrery_term::TermId;

use super::groups::{Aggregate, engine, ids_of};
use crate::context::QueryContext;

/// Points of shapes that are put together at first; later twice as many as were left.
const POINTS_TOGETHER: usize = 4_096;
const POINT_BYTES: usize = size_of::<[f64; 2]>();
const WKT: u8 = 0;
const GEO_JSON: u8 = 1;
const GML: u8 = 3;
const KML: u8 = 4;
/// In the place of all shapes: an error was among them.
const FAILED: u8 = 2;

/// An aggregate of shapes.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) aggregate: PlacesAggregate,
    pub(super) context: Arc<QueryContext>,
}

/// The shapes so far.
#[derive(Default)]
pub(super) struct Gathered {
    shapes: Vec<Shape>,
    points: usize,
    /// So many points were left when they were put together.
    points_left: usize,
    has_failed: bool,
}

impl Gathered {
    fn fail(&mut self) {
        *self = Self {
            has_failed: true,
            ..Self::default()
        };
    }
}

impl Places {
    fn add(&self, state: &mut Gathered, shape: Option<Shape>) {
        let Some(shape) = shape else {
            state.fail();
            return;
        };
        if state.has_failed {
            return;
        }
        if state
            .shapes
            .first()
            .is_some_and(|first| !first.goes_with(&shape))
        {
            state.fail();
            return;
        }
        state.points += shape.points();
        state.shapes.push(shape);
        if state.points > POINTS_TOGETHER + 2 * state.points_left {
            if let Some(all) = self.aggregate.shortened(&state.shapes) {
                state.shapes = vec![all];
                state.points = state.shapes[0].points();
            }
            state.points_left = state.points;
        }
    }
}

fn shape_of(value: &Value) -> Option<Shape> {
    match value {
        Value::Other { lexical, datatype } => from_text(lexical, Notation::of_datatype(datatype)?),
        _ => None,
    }
}

impl Aggregate for Places {
    type State = Gathered;
    type Rows = Operand;

    fn read(&self, columns: &[ArrayRef]) -> Result<Operand> {
        let ids = ids_of(columns, 0)?;
        read_ids(&ids, Reading::Written, self.context.expressions()).map_err(engine)
    }

    fn update(&self, state: &mut Gathered, rows: &Operand, row: usize) {
        self.add(state, rows.get(row).and_then(shape_of));
    }

    fn merge(&self, state: &mut Gathered, other: Gathered) {
        if other.has_failed {
            state.fail();
        }
        for shape in other.shapes {
            self.add(state, Some(shape));
        }
    }

    fn result(&self, state: &Gathered) -> Result<Option<TermId>> {
        let made = self.aggregate.of(&state.shapes);
        let Some((text, notation)) = made.and_then(|shape| literal_of(&shape)) else {
            return Ok(None);
        };
        let value = Value::Other {
            lexical: text.into(),
            datatype: notation.datatype().into(),
        };
        intern_value(&value, self.context.expressions())
            .map(Some)
            .map_err(engine)
    }

    fn write(&self, state: &Gathered, out: &mut Vec<u8>) {
        if state.has_failed {
            out.push(FAILED);
        }
        for shape in &state.shapes {
            // Each was read from a text, or made of such.
            let Some((text, notation)) = literal_of(shape) else {
                *out = vec![FAILED];
                return;
            };
            out.push(match notation {
                Notation::Wkt => WKT,
                Notation::GeoJson => GEO_JSON,
                Notation::Gml => GML,
                Notation::Kml => KML,
            });
            out.extend_from_slice(&(text.len() as u64).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn parse(&self, mut bytes: &[u8]) -> Option<Gathered> {
        let mut state = Gathered::default();
        while let [kind, rest @ ..] = bytes {
            let notation = match *kind {
                WKT => Notation::Wkt,
                GEO_JSON => Notation::GeoJson,
                GML => Notation::Gml,
                KML => Notation::Kml,
                FAILED => {
                    state.fail();
                    return Some(state);
                }
                _ => return None,
            };
            let (length, rest) = rest.split_first_chunk()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (text, rest) = rest.split_at_checked(length)?;
            let shape = from_text(std::str::from_utf8(text).ok()?, notation)?;
            state.points += shape.points();
            state.shapes.push(shape);
            bytes = rest;
        }
        Some(state)
    }

    fn heap_bytes(&self, state: &Gathered) -> usize {
        state.points * POINT_BYTES + state.shapes.capacity() * size_of::<Shape>()
    }
}
