//! The result of an expression for a batch, and the decoding of ids to values.
//!
//! A [`Column`] keeps the cheapest form that is exact: ids of a variable stay ids, so that terms
//! that are only passed on are never read; results of logic are a bitmap; computed values wait as
//! values until someone wants their ids. An absent element is an unbound variable or SPARQL's
//! error: the difference only matters to `BOUND`, which looks at the variable itself.
//!
//! Ids are read in bulk ([`read_ids`]): inline ones from their bits, all others once per distinct
//! id, sorted, so that each page of the dictionary is decompressed once per batch.

use std::sync::Arc;

use arrow::array::{
    Array, ArrowPrimitiveType, AsArray, BooleanArray, BooleanBuilder, Float32Array, Float64Array,
    PrimitiveArray, UInt32Array, UInt64Array,
};
use arrow::compute::take;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use orrery_term::{TermId, TermKind};

use crate::context::ExpressionContext;
use crate::error::Result;
use crate::limits::{Counted, Held};
use crate::values::value::Value;

/// A constant of the query.
#[derive(Debug)]
pub(crate) struct Constant {
    /// Its id in this query.
    pub(crate) id: TermId,
    /// Its value.
    pub(crate) value: Value,
    /// Its text as written; see [`Value::written`].
    pub(crate) written: Value,
}

/// The form in which a function reads its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// As a value: numbers parsed, dates on the time line.
    Value,
    /// As text: the lexical form and the datatype as written.
    Written,
}

/// The results of an expression for the rows of a batch; see the module's documentation.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    /// One id a row.
    Ids(UInt64Array),
    /// One truth value a row.
    Booleans(BooleanArray),
    /// The same term in every row, or an error in every row.
    Constant(Option<Arc<Constant>>),
    /// One `xsd:float` a row.
    Floats(Float32Array),
    /// One `xsd:double` a row.
    Doubles(Float64Array),
    /// One value a row.
    Values(Values),
    /// One of these values for each row, by its place.
    Indexed {
        /// The values.
        values: Values,
        /// For each row, which one.
        index: Vec<u32>,
    },
}

/// Values, and what keeps their memory counted.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    list: Vec<Option<Value>>,
    #[expect(dead_code, reason = "gives back when it is dropped")]
    held: Held,
}

impl Values {
    /// Values that were counted as they came.
    pub(crate) fn counted(list: Vec<Option<Value>>, counted: Counted<'_>) -> Self {
        let held = counted.finish();
        Self { list, held }
    }

    /// Values without texts, which nobody counts.
    fn small(list: Vec<Option<Value>>) -> Self {
        let held = Held::default();
        Self { list, held }
    }
}

/// A column as values that can be asked for by row.
pub struct Operand {
    values: Values,
    index: Index,
}

enum Index {
    /// Row `n` has value `n`.
    Rows,
    /// Every row has the one value.
    One,
    /// Row `n` has the value at place `list[n]`.
    List(Vec<u32>),
}

impl Operand {
    /// The value of a row, if it has one.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&Value> {
        match &self.index {
            Index::Rows => self.values.list[row].as_ref(),
            Index::One => self.values.list[0].as_ref(),
            Index::List(list) => self.values.list[list[row] as usize].as_ref(),
        }
    }

    /// Something else of each of its values, which is asked for by row as the values are: made once
    /// for each distinct value that is known to be one.
    pub(crate) fn read<T>(&self, read: impl Fn(&Value) -> Option<T>) -> ReadOperand<'_, T> {
        let values = self.values.list.iter();
        ReadOperand {
            read: values.map(|value| value.as_ref().and_then(&read)).collect(),
            index: &self.index,
        }
    }
}

/// See [`Operand::read`].
pub(crate) struct ReadOperand<'a, T> {
    read: Vec<Option<T>>,
    index: &'a Index,
}

impl<T> ReadOperand<'_, T> {
    /// What was made of the value of a row, if it has one.
    pub(crate) fn get(&self, row: usize) -> Option<&T> {
        match self.index {
            Index::Rows => self.read[row].as_ref(),
            Index::One => self.read[0].as_ref(),
            Index::List(list) => self.read[list[row] as usize].as_ref(),
        }
    }
}

impl Column {
    /// The values of the column.
    pub(crate) fn into_operand(
        self,
        reading: Reading,
        context: &ExpressionContext,
    ) -> Result<Operand> {
        let (values, index) = match self {
            Self::Ids(ids) => {
                let counted = context.count_rows(ids.len());
                return read_counted(&ids, reading, context, counted);
            }
            Self::Booleans(booleans) => {
                let values = booleans.iter().map(|value| value.map(Value::Boolean));
                (Values::small(values.collect()), Index::Rows)
            }
            Self::Floats(numbers) => (values_of(&numbers, float), Index::Rows),
            Self::Doubles(numbers) => (values_of(&numbers, double), Index::Rows),
            Self::Constant(constant) => {
                let value = constant.map(|constant| match reading {
                    Reading::Value => constant.value.clone(),
                    Reading::Written => constant.written.clone(),
                });
                (Values::small(vec![value]), Index::One)
            }
            Self::Values(values) => (values, Index::Rows),
            Self::Indexed { values, index } => (values, Index::List(index)),
        };
        Ok(Operand { values, index })
    }

    /// The ids of the column; computed values are interned, each once.
    pub(crate) fn into_ids(self, rows: usize, context: &ExpressionContext) -> Result<UInt64Array> {
        Ok(match self {
            Self::Ids(ids) => ids,
            Self::Booleans(booleans) => booleans
                .iter()
                .map(|value| value.map(|value| TermId::boolean(value).bits()))
                .collect(),
            Self::Constant(None) => UInt64Array::new_null(rows),
            Self::Constant(Some(constant)) => UInt64Array::from_value(constant.id.bits(), rows),
            Self::Floats(numbers) => {
                intern_numbers(&numbers, |number| number.to_bits().into(), float, context)?
            }
            Self::Doubles(numbers) => intern_numbers(&numbers, f64::to_bits, double, context)?,
            Self::Values(values) => intern_values(&values.list, context)?,
            Self::Indexed { values, index } => {
                let ids = intern_values(&values.list, context)?;
                take_ids(&ids, &UInt32Array::from(index))?
            }
        })
    }

    /// The effective boolean values of the column.
    pub(crate) fn into_booleans(
        self,
        rows: usize,
        context: &ExpressionContext,
    ) -> Result<BooleanArray> {
        Ok(match self {
            Self::Booleans(booleans) => booleans,
            Self::Constant(constant) => {
                let value = constant.and_then(|constant| constant.value.effective_boolean());
                BooleanArray::from(vec![value; rows])
            }
            Self::Ids(ids) if ids.iter().flatten().all(is_inline_boolean) => ids
                .iter()
                .map(|id| id.map(|id| TermId::from_bits(id) == TermId::boolean(true)))
                .collect(),
            other => {
                let operand = other.into_operand(Reading::Value, context)?;
                (0..rows)
                    .map(|row| operand.get(row).and_then(Value::effective_boolean))
                    .collect()
            }
        })
    }

    /// Spreads a column over more rows: row `n` of the result is row `index[n]`.
    pub(crate) fn spread(self, index: Vec<u32>) -> Result<Self> {
        Ok(match self {
            Self::Ids(ids) => Self::Ids(take_ids(&ids, &UInt32Array::from(index))?),
            Self::Booleans(booleans) => {
                let mut spread = BooleanBuilder::with_capacity(index.len());
                for row in index {
                    let row = row as usize;
                    spread.append_option(booleans.is_valid(row).then(|| booleans.value(row)));
                }
                Self::Booleans(spread.finish())
            }
            Self::Floats(numbers) => Self::Floats(take_rows(&numbers, &index.into())?),
            Self::Doubles(numbers) => Self::Doubles(take_rows(&numbers, &index.into())?),
            Self::Constant(constant) => Self::Constant(constant),
            Self::Values(values) => Self::Indexed { values, index },
            Self::Indexed {
                values,
                index: inner,
            } => Self::Indexed {
                values,
                index: index.into_iter().map(|row| inner[row as usize]).collect(),
            },
        })
    }
}

#[inline]
fn is_inline_boolean(bits: u64) -> bool {
    TermId::from_bits(bits).kind() == TermKind::Boolean
}

/// The ids at these rows.
pub(crate) fn take_ids(ids: &UInt64Array, rows: &UInt32Array) -> Result<UInt64Array> {
    take_rows(ids, rows)
}

fn take_rows<P: ArrowPrimitiveType>(
    column: &PrimitiveArray<P>,
    rows: &UInt32Array,
) -> Result<PrimitiveArray<P>> {
    let taken = take(column, rows, None).map_err(datafusion_common::DataFusionError::from)?;
    Ok(taken.as_primitive::<P>().clone())
}

fn values_of<P: ArrowPrimitiveType>(
    numbers: &PrimitiveArray<P>,
    value: impl Fn(P::Native) -> Value,
) -> Values {
    Values::small(numbers.iter().map(|number| number.map(&value)).collect())
}

fn float(number: f32) -> Value {
    Value::Float(number.into())
}

fn double(number: f64) -> Value {
    Value::Double(number.into())
}

fn intern_values(values: &[Option<Value>], context: &ExpressionContext) -> Result<UInt64Array> {
    values
        .iter()
        .map(|value| {
            value
                .as_ref()
                .map(|value| Ok(intern_value(value, context)?.bits()))
                .transpose()
        })
        .collect()
}

/// The ids of plain numbers. Where one does not fit into an id, a term is made of each different
/// one once: to make it costs many times what it costs to find it again.
fn intern_numbers<P: ArrowPrimitiveType>(
    numbers: &PrimitiveArray<P>,
    bits: impl Fn(P::Native) -> u64,
    value: impl Fn(P::Native) -> Value,
    context: &ExpressionContext,
) -> Result<UInt64Array> {
    let mut known: HashMap<u64, u64> = HashMap::new();
    let mut id = |number| {
        let value = value(number);
        if let Some(id) = value.to_inline() {
            return Ok(id.bits());
        }
        match known.entry(bits(number)) {
            Entry::Occupied(entry) => Ok(*entry.get()),
            Entry::Vacant(entry) => {
                let id = context.intern(&value.to_term())?;
                Ok(*entry.insert(id.bits()))
            }
        }
    };
    numbers
        .iter()
        .map(|number| number.map(&mut id).transpose())
        .collect()
}

/// The id of a computed value.
pub fn intern_value(value: &Value, context: &ExpressionContext) -> Result<TermId> {
    match value.to_inline() {
        Some(id) => Ok(id),
        None => context.intern(&value.to_term()),
    }
}

/// The distinct ids of a column in ascending order, and which one each row has.
pub(crate) struct DistinctIds {
    /// Strictly ascending.
    pub(crate) ids: Vec<TermId>,
    /// For each row the place in `ids`; one past the end for a null.
    pub(crate) index: Vec<u32>,
    /// Whether there is a null.
    pub(crate) has_null: bool,
}

impl DistinctIds {
    /// The distinct ids of a column. Costs one pass if they are sorted, a look-up a row where a
    /// beginning shows that they repeat much, and a sort otherwise.
    pub(crate) fn of(column: &UInt64Array) -> Self {
        let has_null = column.null_count() > 0;
        let (ids, mut index) = if !has_null && column.values().is_sorted() {
            distinct_of_sorted(column.values())
        } else {
            distinct_of_repeated(column).unwrap_or_else(|| distinct_of_unsorted(column))
        };
        if has_null {
            let null = ids.len() as u32;
            for (row, place) in index.iter_mut().enumerate() {
                if column.is_null(row) {
                    *place = null;
                }
            }
        }
        Self {
            ids,
            index,
            has_null,
        }
    }
}

/// Ascending distinct ids, and for each row its place among them; places of nulls are not set.
type Distinct = (Vec<TermId>, Vec<u32>);

fn distinct_of_sorted(values: &[u64]) -> Distinct {
    let mut ids: Vec<TermId> = Vec::new();
    let index = values.iter().map(|&bits| {
        let id = TermId::from_bits(bits);
        if ids.last() != Some(&id) {
            ids.push(id);
        }
        (ids.len() - 1) as u32
    });
    let index = index.collect();
    (ids, index)
}

fn distinct_of_unsorted(column: &UInt64Array) -> Distinct {
    let values = column.values();
    let mut pairs: Vec<(u64, u32)> = (0..column.len())
        .filter(|&row| column.is_valid(row))
        .map(|row| (values[row], row as u32))
        .collect();
    pairs.sort_unstable();
    let mut ids: Vec<TermId> = Vec::new();
    let mut index = vec![0_u32; column.len()];
    for (bits, row) in pairs {
        let id = TermId::from_bits(bits);
        if ids.last() != Some(&id) {
            ids.push(id);
        }
        index[row as usize] = (ids.len() - 1) as u32;
    }
    (ids, index)
}

/// `None` as soon as more than every fourth of the rows seen brings a new id: then a sort is
/// quicker.
fn distinct_of_repeated(column: &UInt64Array) -> Option<Distinct> {
    /// So many ids may be new at the beginning.
    const FIRST_IDS: usize = 64;
    let mut places: HashMap<u64, u32> = HashMap::with_capacity(FIRST_IDS);
    let mut index = vec![0_u32; column.len()];
    for (row, &bits) in column.values().iter().enumerate() {
        if column.is_null(row) {
            continue;
        }
        let next = places.len() as u32;
        let place = *places.entry(bits).or_insert(next);
        if place == next && places.len() > FIRST_IDS + row / 4 {
            return None;
        }
        index[row] = place;
    }
    let mut ascending: Vec<(u64, u32)> = places.into_iter().collect();
    ascending.sort_unstable();
    let mut ranks = vec![0_u32; ascending.len()];
    for (rank, (_, place)) in ascending.iter().enumerate() {
        ranks[*place as usize] = rank as u32;
    }
    for (row, place) in index.iter_mut().enumerate() {
        if column.is_valid(row) {
            *place = ranks[*place as usize];
        }
    }
    let ids = ascending.iter().map(|(bits, _)| TermId::from_bits(*bits));
    Some((ids.collect(), index))
}

/// The values of a column of ids; see the module's documentation.
///
/// # Errors
/// When they cannot be read, or there is no room for all of them.
pub fn read_ids(
    column: &UInt64Array,
    reading: Reading,
    context: &ExpressionContext,
) -> Result<Operand> {
    read_counted(column, reading, context, context.count_all())
}

/// The same for a column of the rows that are evaluated at a time, which may be too many.
pub(crate) fn read_rows(column: &UInt64Array, context: &ExpressionContext) -> Result<Operand> {
    let counted = context.count_rows(column.len());
    read_counted(column, Reading::Value, context, counted)
}

fn read_counted(
    column: &UInt64Array,
    reading: Reading,
    context: &ExpressionContext,
    mut counted: Counted<'_>,
) -> Result<Operand> {
    if reading == Reading::Value
        && let Some(values) = read_inline(column)
    {
        return Ok(Operand {
            values: Values::small(values),
            index: Index::Rows,
        });
    }
    let distinct = DistinctIds::of(column);
    let mut values = read_sorted(&distinct.ids, reading, context, &mut counted)?;
    // What the nulls point at.
    values.push(None);
    Ok(Operand {
        values: Values::counted(values, counted),
        index: Index::List(distinct.index),
    })
}

/// The values of a column whose ids are all inline.
fn read_inline(column: &UInt64Array) -> Option<Vec<Option<Value>>> {
    let all_inline = column
        .iter()
        .flatten()
        .all(|bits| TermId::from_bits(bits).is_inline());
    all_inline.then(|| {
        column
            .iter()
            .map(|bits| bits.and_then(|bits| Value::from_inline(TermId::from_bits(bits))))
            .collect()
    })
}

/// The values of strictly ascending ids.
pub(crate) fn read_sorted(
    ids: &[TermId],
    reading: Reading,
    context: &ExpressionContext,
    counted: &mut Counted<'_>,
) -> Result<Vec<Option<Value>>> {
    let mut values = vec![None; ids.len()];
    let mut refused = None;
    let mut from = 0;
    while from < ids.len() {
        let is_inline = ids[from].is_inline();
        let run = ids[from..]
            .iter()
            .take_while(|id| id.is_inline() == is_inline)
            .count();
        let part = &ids[from..from + run];
        if is_inline && reading == Reading::Value {
            for (value, &id) in values[from..].iter_mut().zip(part) {
                *value = Value::from_inline(id);
            }
        } else {
            context.terms(part, |at, term| {
                if refused.is_some() {
                    return;
                }
                let value = match reading {
                    Reading::Value => Value::from_term(&term),
                    Reading::Written => Value::written(&term),
                };
                refused = counted.add(&value).err();
                values[from + at] = Some(value);
            })?;
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
        from += run;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(column: &[Option<u64>]) {
        let distinct = DistinctIds::of(&UInt64Array::from(column.to_vec()));
        assert!(distinct.ids.is_sorted_by(|left, right| left < right));
        assert_eq!(distinct.has_null, column.contains(&None));
        let id_at = |&place: &u32| distinct.ids.get(place as usize).map(|id| id.bits());
        let found: Vec<Option<u64>> = distinct.index.iter().map(id_at).collect();
        assert_eq!(found, column);
        let all: std::collections::BTreeSet<u64> = column.iter().flatten().copied().collect();
        assert_eq!(distinct.ids.len(), all.len());
    }

    proptest! {
        #[test]
        fn distinct_ids_stand_for_their_rows(
            different in prop_oneof![Just(3_u64), Just(100), Just(10_000)],
            rows in proptest::collection::vec(proptest::option::weighted(0.95, any::<u64>()), 0..2_000),
        ) {
            let mut column: Vec<Option<u64>> =
                rows.iter().map(|id| id.map(|id| id % different)).collect();
            check(&column);
            column.retain(Option::is_some);
            check(&column);
            column.sort_unstable();
            check(&column);
        }
    }

    #[test]
    fn ids_that_stop_repeating_are_found_too() {
        let column: Vec<Option<u64>> = (0..1_000_u64)
            .rev()
            .map(|row| Some(if row > 500 { row % 7 } else { row }))
            .collect();
        check(&column);
    }
}
