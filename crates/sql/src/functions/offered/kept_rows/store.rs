//! The store of group rows, deduplicated where needed, with a known size.

use std::hash::BuildHasher;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::arrow::row::{Row, RowConverter, SortField};
use datafusion::common::{Result, internal_err};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::held::HeldRows;
use crate::{Error, SqlState};

/// Rows that are made arrays at a time.
const BATCH_ROWS: usize = 8_192;
/// And about their bytes.
const BATCH_BYTES: usize = 1 << 20;
/// The texts of one array are addressed by 31 bits.
const STATE_BYTES_MAX: usize = (1 << 31) - (1 << 20);

/// Whether values of such types can be held.
pub(super) fn are_kept(types: &[DataType]) -> bool {
    RowConverter::supports_fields(&plain_fields(types))
}

fn plain_fields(types: &[DataType]) -> Vec<SortField> {
    types.iter().cloned().map(SortField::new).collect()
}

/// An element of the state of a group: the arguments and keys of a row.
pub(super) fn state_type(types: &[DataType], keys: &[DataType]) -> FieldRef {
    let of_row = types.iter().chain(keys).enumerate();
    let fields: Fields = of_row
        .map(|(number, of)| Field::new(format!("c{number}"), of.clone(), true))
        .collect();
    Arc::new(Field::new_list_field(DataType::Struct(fields), true))
}

/// See the module.
pub(super) struct Store {
    types: Vec<DataType>,
    key_types: Vec<DataType>,
    of_values: RowConverter,
    of_keys: RowConverter,
    held: HeldRows,
    /// The places of different rows.
    different: Option<HashTable<u32>>,
    hashes: RandomState,
    /// What is NULL is not counted, and not kept.
    leaves_nulls: bool,
}

impl Store {
    pub(super) fn new(
        types: Vec<DataType>,
        key_types: Vec<DataType>,
        options: impl Iterator<Item = SortOptions>,
        is_distinct: bool,
        leaves_nulls: bool,
    ) -> Result<Self> {
        let of_values = RowConverter::new(plain_fields(&types))?;
        let fields = key_types.iter().cloned().zip(options);
        let fields = fields.map(|(of, options)| SortField::new_with_options(of, options));
        let of_keys = RowConverter::new(fields.collect())?;
        Ok(Self {
            held: HeldRows::default(),
            types,
            key_types,
            of_values,
            of_keys,
            different: is_distinct.then(HashTable::new),
            hashes: RandomState::default(),
            leaves_nulls,
        })
    }

    fn is_ordered(&self) -> bool {
        !self.key_types.is_empty()
    }

    pub(super) fn leaves_nulls(&self) -> bool {
        self.leaves_nulls
    }

    /// The groups of all rows.
    pub(super) fn groups(&self) -> impl Iterator<Item = u32> {
        self.held.groups()
    }

    /// Takes rows, of which more columns may come than are kept.
    pub(super) fn take(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
    ) -> Result<()> {
        let (arguments, keys) = self.divided(columns)?;
        let nulls = match self.leaves_nulls {
            true => arguments.first().and_then(|it| it.logical_nulls()),
            false => None,
        };
        let is_taken = |row: usize| {
            filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
                && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
        };
        let came = self.of_values.convert_columns(arguments)?;
        let keys = match self.is_ordered() {
            true => Some(self.of_keys.convert_columns(keys)?),
            false => None,
        };
        for (row, &group) in groups.iter().enumerate() {
            if is_taken(row) {
                let key = keys.as_ref().map(|keys| keys.row(row));
                self.keep(group as u32, came.row(row), key)?;
            }
        }
        Ok(())
    }

    /// Keeps a row, unless it is there already and none is kept twice.
    fn keep(&mut self, group: u32, values: Row<'_>, key: Option<Row<'_>>) -> Result<()> {
        let Some(place) = self.held.next_place() else {
            return Err(Error::new(
                SqlState::ProgramLimitExceeded,
                "an aggregate keeps too many rows: ask for fewer at once",
            )
            .into());
        };
        if self.is_new(group, values.data(), place) {
            let (of_values, of_keys) = (&self.of_values, &self.of_keys);
            let empty = || (of_values.empty_rows(0, 0), of_keys.empty_rows(0, 0));
            self.held.push(group, values, key, empty);
        }
        Ok(())
    }

    /// The arguments and the keys of rows.
    fn divided<'a>(&self, columns: &'a [ArrayRef]) -> Result<(&'a [ArrayRef], &'a [ArrayRef])> {
        let Some((arguments, keys)) = columns.split_at_checked(self.types.len()) else {
            return internal_err!("an aggregate has fewer columns than arguments");
        };
        match keys.get(..self.key_types.len()) {
            Some(keys) => Ok((arguments, keys)),
            None => internal_err!("an aggregate has fewer columns than keys of its order"),
        }
    }

    /// Whether a row is to be kept; the table of places is told that it is at this one.
    fn is_new(&mut self, group: u32, bytes: &[u8], place: u32) -> bool {
        let Some(different) = &mut self.different else {
            return true;
        };
        let held = &self.held;
        let hash = |group: u32, bytes: &[u8]| self.hashes.hash_one((group, bytes));
        let of_place = |&place: &u32| hash(held.group(place), held.values(place).data());
        let is_same =
            |&place: &u32| held.group(place) == group && held.values(place).data() == bytes;
        match different.entry(hash(group, bytes), is_same, of_place) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                vacant.insert(place);
                true
            }
        }
    }

    /// Takes rows of states, of one group each.
    pub(super) fn merge(&mut self, states: &ArrayRef, groups: &[usize]) -> Result<()> {
        let lists = states.as_list::<i32>();
        let rows = lists.values().as_struct();
        let offsets = lists.value_offsets();
        // The lists lie one behind the other: rows are taken as many at a time as there are in a
        // batch, not list by list.
        let mut of_rows = Vec::with_capacity(BATCH_ROWS);
        let mut begin = 0;
        for (list, &group) in groups.iter().enumerate() {
            if lists.is_null(list) {
                continue;
            }
            for row in offsets[list] as usize..offsets[list + 1] as usize {
                if of_rows.len() == BATCH_ROWS || row != begin + of_rows.len() {
                    self.take(rows.slice(begin, of_rows.len()).columns(), &of_rows, None)?;
                    of_rows.clear();
                    begin = row;
                }
                of_rows.push(group);
            }
        }
        self.take(rows.slice(begin, of_rows.len()).columns(), &of_rows, None)
    }

    /// The places of the rows of the first groups, by group, and in the order of each.
    pub(super) fn sorted(&self, groups_count: usize) -> Vec<u32> {
        let group = |place: u32| self.held.group(place);
        let is_of = |place: &u32| (group(*place) as usize) < groups_count;
        let mut places: Vec<u32> = self.held.places().filter(is_of).collect();
        match self.is_ordered() {
            true => places.sort_unstable_by(|&left, &right| {
                group(left)
                    .cmp(&group(right))
                    .then_with(|| self.held.key(left).cmp(&self.held.key(right)))
                    .then(left.cmp(&right))
            }),
            false => places.sort_unstable_by_key(|&place| (group(place), place)),
        }
        places
    }

    /// Places in parts, of which each is little once more.
    pub(super) fn parts<'a>(&'a self, places: &'a [u32]) -> impl Iterator<Item = &'a [u32]> {
        let mut rest = places;
        std::iter::from_fn(move || {
            let mut bytes = 0;
            let is_within = |place: &&u32| {
                let is_within = bytes < BATCH_BYTES;
                bytes += self.held.values(**place).data().len();
                is_within
            };
            let count = rest.iter().take(BATCH_ROWS).take_while(is_within).count();
            let (part, behind) = rest.split_at(count);
            rest = behind;
            (count > 0).then_some(part)
        })
    }

    /// The arguments of rows, and their groups.
    pub(super) fn arguments(&self, places: &[u32]) -> Result<(Vec<ArrayRef>, Vec<usize>)> {
        let rows = |place| self.held.values(place);
        let values = decoded(&self.of_values, rows, places, &self.types)?;
        let groups = places.iter().map(|&it| self.held.group(it) as usize);
        Ok((values, groups.collect()))
    }

    /// The states of the first groups.
    pub(super) fn states(&self, groups_count: usize) -> Result<ArrayRef> {
        let places = self.sorted(groups_count);
        let mut counts = vec![0; groups_count];
        for &place in &places {
            counts[self.held.group(place) as usize] += 1;
        }
        let (values, keys) = (
            |place| self.held.values(place),
            |place| self.held.key(place),
        );
        let mut columns = decoded(&self.of_values, values, &places, &self.types)?;
        if self.is_ordered() {
            columns.extend(decoded(&self.of_keys, keys, &places, &self.key_types)?);
        }
        self.lists(columns, OffsetBuffer::from_lengths(counts))
    }

    /// The state of each row alone, as it comes.
    pub(super) fn states_of(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<ArrayRef> {
        let rows = columns.first().map_or(0, |it| it.len());
        let mut alone = Self::new(
            self.types.clone(),
            self.key_types.clone(),
            // Their order is of no matter.
            std::iter::repeat(SortOptions::default()),
            false,
            self.leaves_nulls,
        )?;
        let groups: Vec<_> = (0..rows).collect();
        alone.take(columns, &groups, filter)?;
        alone.states(rows)
    }

    fn lists(&self, columns: Vec<ArrayRef>, offsets: OffsetBuffer<i32>) -> Result<ArrayRef> {
        let element = state_type(&self.types, &self.key_types);
        let DataType::Struct(fields) = element.data_type() else {
            return internal_err!("a state is of structs");
        };
        let rows = StructArray::try_new(fields.clone(), columns, None)?;
        let lists = ListArray::try_new(element, offsets, Arc::new(rows), None)?;
        Ok(Arc::new(lists))
    }

    /// Drops the rows of the first groups; the others are numbered from the first that is left.
    pub(super) fn drop_first(&mut self, groups_count: usize) -> Result<()> {
        let old = std::mem::take(&mut self.held);
        if let Some(different) = &mut self.different {
            *different = HashTable::new();
        }
        for place in old.places() {
            if let Some(group) = old.group(place).checked_sub(groups_count as u32) {
                let key = self.is_ordered().then(|| old.key(place));
                self.keep(group, old.values(place), key)?;
            }
        }
        Ok(())
    }

    /// The bytes that are held, and those of so many copies of the arguments, and of one of the
    /// keys, in what is made of them.
    pub(super) fn size(&self, copies: usize) -> usize {
        let different = self.different.as_ref();
        let (value_bytes, key_bytes) = self.held.bytes();
        self.held.size()
            + copies * value_bytes
            + key_bytes
            + different.map_or(0, HashTable::allocation_size)
    }
}

fn decoded<'r>(
    of: &RowConverter,
    row: impl Fn(u32) -> Row<'r>,
    places: &[u32],
    types: &[DataType],
) -> Result<Vec<ArrayRef>> {
    let bytes: usize = places.iter().map(|&it| row(it).data().len()).sum();
    if bytes > STATE_BYTES_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            "what an aggregate keeps at once may take 2 GB: make groups smaller, or give less memory, so that they go to files",
        )
        .into());
    }
    let columns = of.convert_rows(places.iter().map(|&it| row(it)))?;
    let columns = columns.into_iter().zip(types);
    let columns = columns.map(|(column, of)| match column.data_type() == of {
        true => Ok(column),
        // Dictionaries come back as what is in them.
        false => Ok(cast(&column, of)?),
    });
    columns.collect()
}
