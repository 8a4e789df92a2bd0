//! Construction and access functions of triple terms.
//!
//! Both work on ids and give ids: a part comes out as the very term it is, not as its value in
//! canonical form. Each distinct triple term is read once a batch, and each distinct result
//! interned once.

use arrow::array::{UInt32Array, UInt64Array};
use hashbrown::HashMap;
use orrery_term::{Term, TermId, Triple};

use crate::columns::column::{DistinctIds, take_ids};
use crate::context::ExpressionContext;
use crate::error::Result;

/// A part of a triple term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TriplePart {
    Subject,
    Predicate,
    Object,
}

impl TriplePart {
    fn of<'a>(self, triple: &'a Triple<'a>) -> &'a Term<'a> {
        match self {
            Self::Subject => triple.subject(),
            Self::Predicate => triple.predicate(),
            Self::Object => triple.object(),
        }
    }
}

/// The part of each triple term; none of other terms.
pub(crate) fn parts_of_triples(
    part: TriplePart,
    ids: &UInt64Array,
    context: &ExpressionContext,
) -> Result<UInt64Array> {
    let distinct = DistinctIds::of(ids);
    let mut parts: Vec<Option<u64>> = vec![None; distinct.ids.len() + 1];
    let mut failure = None;
    context.terms(&distinct.ids, |at, term| {
        if let Term::Triple(triple) = &term {
            match context.intern(part.of(triple)) {
                Ok(id) => parts[at] = Some(id.bits()),
                Err(error) => failure = Some(error),
            }
        }
    })?;
    match failure {
        Some(error) => Err(error),
        // The last element is what nulls point at.
        None => take_ids(
            &UInt64Array::from(parts),
            &UInt32Array::from(distinct.index),
        ),
    }
}

/// The triple term of each row; none where a part is missing or may not stand in its place.
pub(crate) fn triples(
    parts: &[UInt64Array; 3],
    context: &ExpressionContext,
) -> Result<UInt64Array> {
    let rows = parts[0].len();
    let distinct = parts.each_ref().map(DistinctIds::of);
    let mut terms = [const { Vec::new() }; 3];
    for (terms, distinct) in terms.iter_mut().zip(&distinct) {
        terms.reserve(distinct.ids.len());
        context.terms(&distinct.ids, |_, term| terms.push(term.into_owned()))?;
    }
    let mut known: HashMap<[u32; 3], Option<u64>> = HashMap::new();
    (0..rows)
        .map(|row| {
            let places = distinct.each_ref().map(|distinct| distinct.index[row]);
            if let Some(&id) = known.get(&places) {
                return Ok(id);
            }
            let part = |position: usize| -> Option<Term<'_>> {
                let term: &Term<'static> = terms[position].get(places[position] as usize)?;
                Some(term.as_ref())
            };
            let triple = part(0)
                .zip(part(1))
                .zip(part(2))
                .and_then(|((s, p), o)| Triple::new(s, p, o).ok());
            let id = match triple {
                Some(triple) => Some(context.intern(&triple.into())?),
                None => None,
            };
            let id = id.map(TermId::bits);
            known.insert(places, id);
            Ok(id)
        })
        .collect()
}
