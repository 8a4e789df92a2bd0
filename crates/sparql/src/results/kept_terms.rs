//! A cache of the serialized terms of an answer's column, for later slices.
//!
//! ```text
//! id -> number -> where its bytes are          new ids: sorted, decoded, written once
//! ```
//!
//! A slice writes each of its distinct terms once. Where a column leads to the same terms again and
//! again, in no order (the products of offers), most of them were written for an earlier slice: in
//! an export of 570,000 offers each of 28,000 products was decoded 17 times. The cache is dropped
//! where hardly any term comes again, and begun anew when it is too large. Its memory is reserved;
//! without memory nothing is cached.

use std::sync::Arc;

use arrow::array::{Array, UInt64Array};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use orrery_operators::aggregate::IdTable;
use orrery_term::{Term, TermId};

use super::batch::UNBOUND;
use crate::error::QueryError;

/// What the terms of a column may take: many more do not stay in a cache.
const KEPT_BYTES_MAX: usize = if cfg!(test) { 64 << 10 } else { 4 << 20 };
/// With fewer rows to a different term sorting them alone is as quick.
const ROWS_PER_TERM_MAX: usize = 16;
/// If of so many rows all but one have a term that was not there, a slice had no use of it.
const ROWS_PER_KNOWN_MAX: usize = 8;
/// After so many of these in a row it is not worth it. The first one has nothing to find.
const USELESS_SLICES_MAX: u8 = 2;

/// Whether the terms of a column are kept.
#[derive(Debug, Default)]
pub(super) enum Keeping {
    /// No slice has shown yet that they come in no order.
    #[default]
    Undecided,
    /// They are from the next slice on.
    Chosen(KeptTerms),
    /// They are.
    Kept(KeptTerms),
    /// They do not come again, or there is no memory for them.
    GivenUp,
}

/// Terms of one column; see the module's documentation.
#[derive(Debug)]
pub(super) struct KeptTerms {
    table: IdTable,
    bytes: Vec<u8>,
    /// Where each term begins and ends, by its number.
    spans: Vec<(usize, usize)>,
    /// Numbers of the terms that are to be written.
    new: Vec<(TermId, u32)>,
    reservation: MemoryReservation,
    /// How many slices in a row, the last ones, had hardly a term that was there.
    useless_slices: u8,
}

impl Keeping {
    /// The terms, if they are kept.
    pub(super) fn terms(&self) -> Option<&KeptTerms> {
        match self {
            Self::Kept(terms) => Some(terms),
            Self::Undecided | Self::Chosen(_) | Self::GivenUp => None,
        }
    }

    /// Decides to keep them if a slice of the column shows that it pays.
    pub(super) fn decide(
        &mut self,
        ids: &UInt64Array,
        different: usize,
        pool: &Arc<dyn MemoryPool>,
    ) {
        let pays = matches!(self, Self::Undecided)
            && different * ROWS_PER_TERM_MAX > ids.len()
            && !ids.values().is_sorted();
        if pays {
            *self = Self::Chosen(KeptTerms::new(pool));
        }
    }

    /// Gives up what does not pay, or begins anew, after a slice. Nobody asks for its terms any
    /// more.
    pub(super) fn look_back(&mut self, rows: usize) {
        let terms = match std::mem::take(self) {
            Self::Kept(terms) => terms,
            Self::Chosen(terms) => {
                *self = Self::Kept(terms);
                return;
            }
            decided @ (Self::Undecided | Self::GivenUp) => {
                *self = decided;
                return;
            }
        };
        *self = terms.after_slice(rows);
    }
}

impl KeptTerms {
    fn after_slice(mut self, rows: usize) -> Keeping {
        let new = self.new.len();
        self.useless_slices = match new > rows - rows / ROWS_PER_KNOWN_MAX {
            true => self.useless_slices + 1,
            false => 0,
        };
        if self.size() > KEPT_BYTES_MAX {
            self.forget();
        }
        let is_refused = self.reservation.try_resize(self.size()).is_err();
        match is_refused || self.useless_slices >= USELESS_SLICES_MAX {
            true => Keeping::GivenUp,
            false => Keeping::Kept(self),
        }
    }

    fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        Self {
            table: IdTable::new(),
            bytes: Vec::new(),
            spans: Vec::new(),
            new: Vec::new(),
            reservation: MemoryConsumer::new("written terms of the answer").register(pool),
            useless_slices: 0,
        }
    }

    fn forget(&mut self) {
        self.table = IdTable::new();
        self.bytes = Vec::new();
        self.spans = Vec::new();
        self.new = Vec::new();
    }

    fn size(&self) -> usize {
        let spans = self.spans.capacity() * size_of::<(usize, usize)>();
        let new = self.new.capacity() * size_of::<(TermId, u32)>();
        self.table.size() + self.bytes.capacity() + spans + new
    }

    /// Numbers the rows of a slice; `decode` is called once with the ids that were not there,
    /// ascending, and gives the term of each to the function, which `write` then writes. The bytes
    /// that were written.
    pub(super) fn add<E: From<QueryError>>(
        &mut self,
        ids: &UInt64Array,
        write: impl Fn(&Term<'_>, &mut Vec<u8>),
        decode: impl FnOnce(&[TermId], &mut dyn FnMut(Term<'_>)) -> Result<(), E>,
        numbers: &mut Vec<u32>,
    ) -> Result<usize, E> {
        let before = self.table.len();
        numbers.clear();
        numbers.reserve(ids.len());
        for (row, &bits) in ids.values().iter().enumerate() {
            numbers.push(match ids.is_valid(row) {
                true => self.table.number(bits).ok_or_else(|| {
                    QueryError::internal("an answer has more terms than can be numbered")
                })?,
                false => UNBOUND,
            });
        }
        let new = before as u32..self.table.len() as u32;
        self.new.clear();
        let table = &self.table;
        let with_id = new.map(|number| (TermId::from_bits(table.id(number)), number));
        self.new.extend(with_id);
        self.new.sort_unstable();
        let sorted: Vec<TermId> = self.new.iter().map(|(id, _)| *id).collect();
        self.spans.resize(self.table.len(), (0, 0));
        let first_byte = self.bytes.len();
        let mut new = self.new.iter();
        decode(&sorted, &mut |term| {
            let start = self.bytes.len();
            write(&term, &mut self.bytes);
            if let Some((_, number)) = new.next() {
                self.spans[*number as usize] = (start, self.bytes.len());
            }
        })?;
        Ok(self.bytes.len() - first_byte)
    }

    /// A term by the number of a row.
    #[inline]
    pub(super) fn term(&self, number: u32) -> &[u8] {
        let (start, end) = self.spans[number as usize];
        &self.bytes[start..end]
    }
}

#[cfg(test)]
mod tests {
    use datafusion_execution::memory_pool::GreedyMemoryPool;
    use hashbrown::HashSet;

    use super::*;

    const ROWS: usize = 1_000;

    /// Numbers without an order, the same each time.
    fn ids(slice: usize, different: u64) -> UInt64Array {
        let id = |row: usize| {
            let mixed = ((slice * ROWS + row) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            (!row.is_multiple_of(50)).then_some(TermId::iri(mixed % different).bits())
        };
        (0..ROWS).map(id).collect()
    }

    fn text(id: u64) -> String {
        format!("the term {id:020}")
    }

    /// Writes slices as an answer does; gives what is kept in the end, and how many terms were
    /// decoded for slices that were kept.
    fn write(slices: usize, different: u64, pool_bytes: usize) -> (Keeping, usize) {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(pool_bytes));
        let (mut keeping, mut decoded) = (Keeping::default(), 0);
        for slice in 0..slices {
            let ids = ids(slice, different);
            if let Keeping::Kept(terms) = &mut keeping {
                let mut numbers = Vec::new();
                let decode = |new: &[TermId], found: &mut dyn FnMut(Term<'_>)| {
                    assert!(new.windows(2).all(|pair| pair[0] < pair[1]));
                    decoded += new.len();
                    for id in new {
                        found(Term::string(text(id.bits())));
                    }
                    Ok::<(), QueryError>(())
                };
                let write = |term: &Term<'_>, out: &mut Vec<u8>| match term {
                    Term::Literal(literal) => out.extend_from_slice(literal.lexical.as_bytes()),
                    _ => unreachable!(),
                };
                terms.add(&ids, write, decode, &mut numbers).unwrap();
                assert_eq!(numbers.len(), ROWS);
                for (number, id) in numbers.iter().zip(&ids) {
                    match id {
                        Some(id) => assert_eq!(terms.term(*number), text(id).as_bytes()),
                        None => assert_eq!(*number, UNBOUND),
                    }
                }
            } else {
                let seen: HashSet<u64> = ids.iter().flatten().collect();
                keeping.decide(&ids, seen.len(), &pool);
            }
            keeping.look_back(ROWS);
        }
        (keeping, decoded)
    }

    #[test]
    fn terms_that_come_again_are_decoded_once() {
        let (keeping, decoded) = write(20, 300, 1 << 20);
        assert!(keeping.terms().is_some());
        assert_eq!(decoded, 300);
    }

    #[test]
    fn what_does_not_come_again_or_has_no_room_is_given_up() {
        let (keeping, decoded) = write(20, 1 << 40, 1 << 20);
        assert!(matches!(keeping, Keeping::GivenUp));
        assert!(decoded <= 2 * ROWS);
        let (keeping, _) = write(20, 300, 1_000);
        assert!(matches!(keeping, Keeping::GivenUp));
        // Few terms are sorted as quickly.
        let (keeping, decoded) = write(20, 7, 1 << 20);
        assert!(matches!(keeping, Keeping::Undecided));
        assert_eq!(decoded, 0);
    }

    #[test]
    fn what_became_large_is_begun_anew() {
        let (keeping, decoded) = write(40, 1_500, 1 << 20);
        let terms = keeping.terms().unwrap();
        assert!(terms.size() <= KEPT_BYTES_MAX + ROWS * 100);
        assert!(decoded > 3_000, "{decoded}");
    }
}
