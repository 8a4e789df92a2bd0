//! The bits of present pieces: pieces of 4 KiB, 64 of them an extent with one word.
//!
//! ```text
//! file      |.......................... bytes ..........................|
//! extents   |   256 KiB    |   256 KiB    |   256 KiB    | the rest     |
//! pieces    |64 x 4 KiB    |...           |              |    last: cut |
//! bits       held    the side file says that they are on the disk
//!            ready   they are, and their bytes were checked or fetched by this process
//!            touched somebody who has the file mapped was told that they are there: they must stay
//! ```
//!
//! A piece that is ready is held, but for the moment in which it is being evicted. Who asks for
//! pieces marks them as touched *before* looking whether they are ready; who evicts takes back
//! `ready` *before* looking whether they are touched. All of that is sequentially consistent, so
//! one of the two sees the other. That way the question "is it there" needs no lock.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// What is fetched, checked and counted as one.
pub(super) const PIECE_BYTES: u64 = 4 << 10;
/// Pieces whose bits are one word.
pub(super) const PIECES_PER_EXTENT: u64 = 64;
/// What is evicted as one, and has one time of its last use.
pub(super) const EXTENT_BYTES: u64 = PIECE_BYTES * PIECES_PER_EXTENT;

/// Pieces that follow each other, by their numbers in the file.
pub(super) type Pieces = Range<u64>;

/// The pieces that hold some bytes.
#[inline]
pub(super) fn pieces_of(bytes: Range<u64>) -> Pieces {
    bytes.start / PIECE_BYTES..bytes.end.div_ceil(PIECE_BYTES)
}

/// The bytes of some pieces in a file of a length: its last piece ends with it.
pub(super) fn bytes_of(pieces: &Pieces, file_bytes: u64) -> Range<u64> {
    pieces.start * PIECE_BYTES..(pieces.end * PIECE_BYTES).min(file_bytes)
}

/// Bytes that pieces of an extent take up.
pub(super) fn size_of(mask: u64) -> u64 {
    u64::from(mask.count_ones()) * PIECE_BYTES
}

/// Number of extents in a file of a length.
pub(super) fn extents_in(file_bytes: u64) -> u64 {
    file_bytes.div_ceil(EXTENT_BYTES)
}

/// The extents that pieces lie in, with the bits of these pieces in each.
#[inline]
pub(super) fn by_extent(pieces: Pieces) -> impl Iterator<Item = (usize, u64)> {
    let Range { mut start, end } = pieces;
    std::iter::from_fn(move || {
        if start >= end {
            return None;
        }
        let extent = start / PIECES_PER_EXTENT;
        let first = start % PIECES_PER_EXTENT;
        let count = (end - start).min(PIECES_PER_EXTENT - first);
        start += count;
        Some((extent as usize, bits(first, count)))
    })
}

/// Bits that follow each other.
#[inline]
fn bits(first: u64, count: u64) -> u64 {
    debug_assert!(count >= 1 && first + count <= PIECES_PER_EXTENT);
    (u64::MAX >> (PIECES_PER_EXTENT - count)) << first
}

/// The pieces of an extent whose bits are set, as runs.
pub(super) fn runs(extent: usize, mask: u64) -> impl Iterator<Item = Pieces> {
    let base = extent as u64 * PIECES_PER_EXTENT;
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let first = u64::from(left.trailing_zeros());
        let count = u64::from((left >> first).trailing_ones());
        left &= !bits(first, count);
        Some(base + first..base + first + count)
    })
}

/// What is known of 256 KiB of a file.
#[derive(Debug, Default)]
pub(super) struct Extent {
    ready: AtomicU64,
    touched: AtomicU64,
    held: AtomicU64,
    /// The time of the last use, in the cache's ticks.
    used: AtomicU32,
    /// In which of the last generations of the file it was used, the last one in the highest bit.
    heat: AtomicU8,
    /// Whether `held` is what the side file says.
    is_read: AtomicBool,
}

impl Extent {
    /// Marks pieces as touched and the extent as used, and tells whether all of them are ready.
    #[inline]
    pub(super) fn touch(&self, mask: u64, tick: u32) -> bool {
        if self.touched.load(Ordering::SeqCst) & mask != mask {
            self.touched.fetch_or(mask, Ordering::SeqCst);
        }
        self.note_use(tick);
        self.ready.load(Ordering::SeqCst) & mask == mask
    }

    /// Notes the time of a use. Only a hint, so that two who do it at once may overwrite each
    /// other.
    #[inline]
    pub(super) fn note_use(&self, tick: u32) {
        if self.used.load(Ordering::Relaxed) != tick {
            self.used.store(tick, Ordering::Relaxed);
        }
    }

    /// The time of the last use.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn ready(&self) -> u64 {
        self.ready.load(Ordering::SeqCst)
    }

    pub(super) fn touched(&self) -> u64 {
        self.touched.load(Ordering::SeqCst)
    }

    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::SeqCst)
    }

    /// Whether what the side file says has been read.
    pub(super) fn is_read(&self) -> bool {
        self.is_read.load(Ordering::SeqCst)
    }

    /// Takes over what the side file says. The caller sees to it that nobody changes the side file
    /// meanwhile.
    pub(super) fn set_held(&self, held: u64) {
        self.held.store(held, Ordering::SeqCst);
        self.is_read.store(true, Ordering::SeqCst);
    }

    /// Pieces are on the disk, and their bytes are right.
    pub(super) fn set_ready(&self, mask: u64) {
        self.ready.fetch_or(mask, Ordering::SeqCst);
    }

    /// Takes `ready` back from pieces, whoever touched them.
    pub(super) fn take_back(&self, mask: u64) {
        self.ready.fetch_and(!mask, Ordering::SeqCst);
    }

    /// Takes `ready` back from those pieces that nobody touched; these are returned, and nobody
    /// will read their bytes from now on.
    pub(super) fn take_untouched(&self, mask: u64) -> u64 {
        let wanted = mask & !self.touched();
        let before = self.ready.fetch_and(!wanted, Ordering::SeqCst);
        let late = wanted & self.touched();
        self.ready.fetch_or(late & before, Ordering::SeqCst);
        wanted & !late
    }

    /// What the uses are worth, those of this generation with them: higher is hotter.
    pub(super) fn heat(&self) -> u8 {
        let now = if self.touched() == 0 { 0 } else { 0x80 };
        self.heat.load(Ordering::Relaxed) >> 1 | now
    }

    /// Begins a generation: nobody has touched anything in it.
    pub(super) fn begin(&self) {
        self.heat.store(self.heat(), Ordering::Relaxed);
        self.touched.store(0, Ordering::SeqCst);
    }

    /// Takes over how another extent was used, which has the same bytes.
    pub(super) fn inherit(&self, other: &Self) {
        let heat = other.heat.load(Ordering::Relaxed);
        self.heat.store(heat, Ordering::Relaxed);
        self.used.store(other.used(), Ordering::Relaxed);
        self.touched.store(other.touched(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fall_into_extents_and_bits_come_back_as_runs() {
        let parts: Vec<_> = by_extent(62..130).collect();
        assert_eq!(parts, [(0, 0b11 << 62), (1, u64::MAX), (2, 0b11)]);
        let back: Vec<_> = parts
            .iter()
            .flat_map(|&(at, mask)| runs(at, mask))
            .collect();
        assert_eq!(back, [62..64, 64..128, 128..130]);
        assert_eq!(runs(1, 0b1011).collect::<Vec<_>>(), [64..66, 67..68]);
        assert_eq!(by_extent(5..5).count(), 0);
    }

    #[test]
    fn the_last_piece_ends_with_the_file() {
        assert_eq!(pieces_of(4095..4097), 0..2);
        assert_eq!(bytes_of(&(1..3), 9000), 4096..9000);
        assert_eq!(extents_in(EXTENT_BYTES + 1), 2);
    }

    #[test]
    fn an_extent_that_is_used_in_every_generation_is_hotter_than_one_that_was_used_later() {
        let (always, lately) = (Extent::default(), Extent::default());
        for generation in 0..3 {
            always.begin();
            lately.begin();
            always.touch(1, generation);
        }
        lately.touch(1, 3);
        assert!(always.heat() > lately.heat());
        let copy = Extent::default();
        copy.inherit(&always);
        assert_eq!(copy.heat(), always.heat());
        copy.begin();
        assert_eq!(copy.touched(), 0);
    }

    #[test]
    fn touched_pieces_are_not_taken_away() {
        let extent = Extent::default();
        extent.set_ready(0b111);
        assert!(extent.touch(0b001, 1));
        assert_eq!(extent.take_untouched(0b111), 0b110);
        assert_eq!(extent.ready(), 0b001);
        assert!(!extent.touch(0b010, 1));
    }

    #[test]
    fn a_piece_is_taken_away_or_is_there_for_who_asks_at_the_same_time() {
        let extents: Vec<Extent> = (0..20_000).map(|_| Extent::default()).collect();
        extents.iter().for_each(|extent| extent.set_ready(1));
        // Both are at the same extent at the same time.
        let (first, second) = (AtomicU64::new(0), AtomicU64::new(0));
        let meet = |mine: &AtomicU64, other: &AtomicU64| {
            let arrived = mine.fetch_add(1, Ordering::SeqCst) + 1;
            for looks in 0_u32.. {
                if other.load(Ordering::SeqCst) >= arrived {
                    return;
                }
                match looks % 256 {
                    0 => std::thread::yield_now(),
                    _ => std::hint::spin_loop(),
                }
            }
        };
        let (gone, there): (Vec<bool>, Vec<bool>) = std::thread::scope(|scope| {
            let gone = scope.spawn(|| {
                let gone = extents.iter().map(|extent| {
                    meet(&first, &second);
                    extent.take_untouched(1) != 0
                });
                gone.collect()
            });
            let there = extents.iter().map(|extent| {
                meet(&second, &first);
                extent.touch(1, 1)
            });
            let there = there.collect();
            (gone.join().unwrap_or_default(), there)
        });
        assert_eq!(gone.len(), extents.len());
        for (extent, (gone, there)) in extents.iter().zip(gone.into_iter().zip(there)) {
            assert!(!(gone && there));
            assert_eq!(extent.ready() != 0, !gone);
        }
    }
}
