//! A cached file: a sparse local file, its side file, and the bits of present pieces.
//!
//! Bytes come in by [`CacheFile::store`], are looked at by [`CacheFile::check`] when an earlier
//! process left them, and go by [`CacheFile::evict`]. All three are about the two local files, so
//! they hold `side`: who writes or punches holes alone, who checks beside others. A piece becomes
//! ready only after its bytes and its checksum are written.
//!
//! The local names are numbers; the side file has the key. So a key can have a second local file
//! while somebody still has the first one mapped, which has no name any more by then and goes when
//! its last user does.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use rustix::fs::{Advice, FallocateFlags};

use super::flight::Flight;
use super::means::Means;
use super::pieces::{
    Extent, PIECE_BYTES, PIECES_PER_EXTENT, Pieces, by_extent, bytes_of, extents_in, pieces_of,
    runs, size_of,
};
use super::sums::{Header, Record, Sums};

/// Longest file: what is known of its extents takes 2 GiB of memory then.
const FILE_BYTES_MAX: u64 = 16 << 40;

/// A file of which some pieces are on the local disk.
#[derive(Debug)]
pub(super) struct CacheFile {
    pub(super) key: String,
    pub(super) bytes: u64,
    /// Its local name.
    pub(super) number: u64,
    pub(super) means: Arc<Means>,
    /// What is on its way.
    pub(super) flights: Mutex<Vec<Flight>>,
    pub(super) extents: Box<[Extent]>,
    data: File,
    data_path: PathBuf,
    sums: Sums,
    sums_path: PathBuf,
    /// Held while the local files are written (alone) or checked (beside others).
    side: RwLock<()>,
    /// How many have it mapped.
    mapped: AtomicUsize,
    /// Bytes on the disk. Changed with `side` held alone.
    held_bytes: AtomicU64,
    has_name: AtomicBool,
    /// The generation of mappings it belongs to.
    pub(super) generation: AtomicU32,
}

impl CacheFile {
    /// A new file of which nothing is there.
    pub(super) fn create(means: &Arc<Means>, number: u64, header: Header) -> io::Result<Self> {
        let data_path = means.home.data_path(number);
        let data = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&data_path)?;
        let created = data
            .set_len(header.bytes)
            .and_then(|()| Self::beside(means, number, header, data));
        if created.is_err() {
            let _ignored = std::fs::remove_file(&data_path);
            let _ignored = std::fs::remove_file(means.home.sums_path(number));
        }
        created
    }

    /// A file whose bytes lie at their place, with a new side file that says that nothing is there.
    pub(super) fn beside(
        means: &Arc<Means>,
        number: u64,
        header: Header,
        data: File,
    ) -> io::Result<Self> {
        let sums = Sums::create(&means.home.sums_path(number), &header)?;
        let file = Self::of(means, number, header, (data, sums))?;
        for extent in &file.extents {
            extent.set_held(0);
        }
        Ok(file)
    }

    /// A file that an earlier process has left. `None` if it cannot be used.
    pub(super) fn take_up(means: &Arc<Means>, number: u64) -> io::Result<Option<Self>> {
        let Some((sums, header)) = Sums::open(&means.home.sums_path(number))? else {
            return Ok(None);
        };
        let data = File::options()
            .read(true)
            .write(true)
            .open(means.home.data_path(number))?;
        let metadata = data.metadata()?;
        if metadata.len() != header.bytes {
            return Ok(None);
        }
        let file = Self::of(means, number, header, (data, sums))?;
        file.count(held_on_disk(&metadata) as i64);
        Ok(Some(file))
    }

    fn of(
        means: &Arc<Means>,
        number: u64,
        header: Header,
        (data, sums): (File, Sums),
    ) -> io::Result<Self> {
        if header.bytes > FILE_BYTES_MAX {
            let what = format!("{} bytes, the limit is {FILE_BYTES_MAX}", header.bytes);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        let extents = extents_in(header.bytes);
        Ok(Self {
            key: header.key,
            bytes: header.bytes,
            number,
            means: Arc::clone(means),
            flights: Mutex::default(),
            extents: (0..extents).map(|_| Extent::default()).collect(),
            data,
            data_path: means.home.data_path(number),
            sums,
            sums_path: means.home.sums_path(number),
            side: RwLock::new(()),
            mapped: AtomicUsize::new(0),
            held_bytes: AtomicU64::new(0),
            has_name: AtomicBool::new(true),
            generation: AtomicU32::new(0),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.data_path
    }

    pub(super) fn data(&self) -> &File {
        &self.data
    }

    /// The pieces of the whole file.
    pub(super) fn pieces(&self) -> Pieces {
        pieces_of(0..self.bytes)
    }

    /// Bytes on the disk.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::SeqCst)
    }

    /// Whether nothing of it is on the disk.
    pub(super) fn is_empty(&self) -> bool {
        let is_empty = |extent: &Extent| extent.is_read() && extent.held() == 0;
        self.extents.iter().all(is_empty)
    }

    /// Whether somebody has it mapped.
    pub(super) fn is_mapped(&self) -> bool {
        self.mapped.load(Ordering::SeqCst) > 0
    }

    /// Somebody maps it. With the first one, what was touched before may go again.
    pub(super) fn note_mapped(&self) {
        let _alone = self.side.write();
        let is_first = self.mapped.fetch_add(1, Ordering::SeqCst) == 0;
        if is_first && self.extents.iter().any(|extent| extent.touched() != 0) {
            self.extents.iter().for_each(Extent::begin);
        }
    }

    /// Somebody has it mapped no more.
    pub(super) fn note_unmapped(&self) {
        if self.mapped.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.means.note_unmapped();
        }
    }

    /// Marks pieces as touched, which keeps them there while the file is mapped, and tells whether
    /// all of them are ready.
    ///
    /// This is all that is done for bytes that are there: a few loads.
    #[inline]
    pub(super) fn touch(&self, pieces: &Pieces) -> bool {
        let tick = self.means.tick();
        by_extent(pieces.clone()).fold(true, |ready, (at, mask)| {
            self.extents[at].touch(mask, tick) & ready
        })
    }

    /// Finds out what is there of some extents, and checks the bytes of pieces that an earlier
    /// process has left.
    pub(super) fn check(&self, pieces: &Pieces) {
        for (at, mask) in by_extent(pieces.clone()) {
            let _beside_others = self.side.read();
            let extent = &self.extents[at];
            self.read_record(at);
            let unchecked = mask & extent.held() & !extent.ready();
            if unchecked == 0 {
                continue;
            }
            let right = self.right_pieces(at, unchecked);
            extent.set_ready(right);
            self.note_damage(unchecked & !right);
        }
    }

    /// Finds out what the side file says about some extents.
    pub(super) fn look(&self, pieces: &Pieces) {
        for (at, _) in by_extent(pieces.clone()) {
            if !self.extents[at].is_read() {
                let _beside_others = self.side.read();
                self.read_record(at);
            }
        }
    }

    /// Pieces whose bytes are on the disk, as far as that is known without checking them.
    pub(super) fn held(&self, at: usize) -> u64 {
        self.extents[at].held() | self.extents[at].ready()
    }

    /// Puts the bytes of pieces to their place, but for those that are ready; then all are.
    pub(super) fn store(&self, pieces: &Pieces, bytes: &[u8]) -> io::Result<()> {
        let tick = self.means.tick();
        for (at, mask) in by_extent(pieces.clone()) {
            let _alone = self.side.write();
            self.extents[at].note_use(tick);
            let new = mask & !self.extents[at].ready();
            if new == 0 {
                continue;
            }
            let mut record = self.sums.read(at);
            for run in runs(at, new) {
                let place = bytes_of(&run, self.bytes);
                let part = slice_of(bytes, pieces, &place)?;
                self.data.write_all_at(part, place.start)?;
                note_sums(&mut record, &run, part);
            }
            let added = new & !record.held;
            record.held |= new;
            self.sums.write(at, &record)?;
            self.extents[at].set_held(record.held);
            self.extents[at].set_ready(new);
            self.count_pieces(added, 1);
        }
        Ok(())
    }

    /// Takes in all bytes, which are there already, and were written by us.
    pub(super) fn store_all(&self, tick: u32) -> io::Result<()> {
        let mut buffer = Vec::new();
        for (at, mask) in by_extent(self.pieces()) {
            let _alone = self.side.write();
            let mut record = Record::default();
            for run in runs(at, mask) {
                let place = bytes_of(&run, self.bytes);
                buffer.resize((place.end - place.start) as usize, 0);
                self.data.read_exact_at(&mut buffer, place.start)?;
                note_sums(&mut record, &run, &buffer);
            }
            record.held = mask;
            self.sums.write(at, &record)?;
            let extent = &self.extents[at];
            extent.note_use(tick);
            extent.set_held(mask);
            extent.set_ready(mask);
            self.count_pieces(mask, 1);
        }
        Ok(())
    }

    /// Removes what is there of an extent and may go, and tells how many bytes that was.
    ///
    /// While the file is mapped, only what nobody has touched may go: what was brought ahead, and
    /// neighbours. Fails where files cannot get holes; then the pieces are still there.
    pub(super) fn evict(&self, at: usize) -> io::Result<u64> {
        let _alone = self.side.write();
        let extent = &self.extents[at];
        self.read_record(at);
        let held = extent.held();
        let gone = if self.is_mapped() {
            extent.take_untouched(held)
        } else {
            extent.take_back(held);
            held
        };
        if gone == 0 {
            return Ok(0);
        }
        for run in runs(at, gone) {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let (start, length) = (run.start * PIECE_BYTES, (run.end - run.start) * PIECE_BYTES);
            rustix::fs::fallocate(&self.data, flags, start, length)?;
        }
        self.forget_pieces(at, gone);
        Ok(size_of(gone))
    }

    /// Pieces turned out to be wrong: they will be fetched anew. Counts those that are not what was
    /// stored.
    pub(super) fn distrust(&self, pieces: &Pieces) {
        for (at, mask) in by_extent(pieces.clone()) {
            let _alone = self.side.write();
            self.read_record(at);
            let held = mask & self.extents[at].held();
            self.note_damage(held & !self.right_pieces(at, held));
            self.extents[at].take_back(mask);
            self.forget_pieces(at, held);
        }
    }

    /// Copies pieces that are ready from another file of the same key.
    pub(super) fn copy_from(&self, other: &Self, at: usize, mask: u64) -> io::Result<()> {
        // Its last mapping may end meanwhile, and then it can lose what was just found right.
        let _beside_others = other.side.read();
        let mut buffer = Vec::new();
        for run in runs(at, other.right_pieces(at, mask & other.extents[at].ready())) {
            let place = bytes_of(&run, self.bytes);
            buffer.resize((place.end - place.start) as usize, 0);
            other.data.read_exact_at(&mut buffer, place.start)?;
            self.store(&run, &buffer)?;
        }
        Ok(())
    }

    /// Asks the operating system for bytes that are on the disk.
    pub(super) fn read_ahead(&self, bytes: &Range<u64>) {
        let length = std::num::NonZeroU64::new(bytes.end - bytes.start);
        // Only advice.
        let _ignored = rustix::fs::fadvise(&self.data, bytes.start, length, Advice::WillNeed);
    }

    /// Removes the local names; who has it mapped goes on reading it.
    pub(super) fn lose_name(&self) {
        let _alone = self.side.write();
        if !self.has_name.swap(false, Ordering::SeqCst) {
            return;
        }
        let held = self.held_bytes();
        let unnamed = &self.means.unnamed_bytes;
        unnamed.fetch_add(held, Ordering::SeqCst);
        self.means.home.remove(self.number);
    }

    /// The pieces among these whose bytes have their checksums. The caller holds `side`.
    fn right_pieces(&self, at: usize, mask: u64) -> u64 {
        let record = self.sums.read(at);
        let mut right = 0;
        let mut buffer = Vec::new();
        for run in runs(at, mask & record.held) {
            let place = bytes_of(&run, self.bytes);
            buffer.resize((place.end - place.start) as usize, 0);
            if self.data.read_exact_at(&mut buffer, place.start).is_err() {
                continue;
            }
            for (piece, bytes) in run.zip(buffer.chunks(PIECE_BYTES as usize)) {
                let bit = piece % PIECES_PER_EXTENT;
                if crc32c::crc32c(bytes) == record.sum(bit) {
                    right |= 1 << bit;
                }
            }
        }
        right
    }

    /// Reads the record of an extent if that was not done yet. The caller holds `side`.
    fn read_record(&self, at: usize) {
        let extent = &self.extents[at];
        if !extent.is_read() {
            extent.set_held(self.sums.read(at).held);
        }
    }

    /// Pieces are not there any more, or not right. The caller holds `side` alone.
    fn forget_pieces(&self, at: usize, mask: u64) {
        let mut record = self.sums.read(at);
        record.held &= !mask;
        if let Err(error) = self.sums.write(at, &record) {
            // The checksums do not fit what is there then, and that is found out when it is read.
            tracing::debug!(path = %self.sums_path.display(), %error, "a side file cannot be written");
        }
        self.extents[at].set_held(record.held);
        self.count_pieces(mask, -1);
    }

    fn note_damage(&self, mask: u64) {
        if mask != 0 {
            let pieces = u64::from(mask.count_ones());
            let damaged = &self.means.counters.damaged;
            damaged.fetch_add(pieces, Ordering::Relaxed);
            tracing::warn!(path = %self.data_path.display(), key = self.key, pieces, "damage in a cached file; it is fetched again");
        }
    }

    fn count_pieces(&self, mask: u64, sign: i64) {
        self.count(size_of(mask) as i64 * sign);
    }

    /// Counts bytes that came or went. Less than nothing is nothing: what an earlier process left
    /// is only known roughly.
    fn count(&self, change: i64) {
        let changed = |bytes: u64| Some(bytes.saturating_add_signed(change));
        let before = self
            .held_bytes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed)
            .unwrap_or_default();
        let real = before.saturating_add_signed(change) as i64 - before as i64;
        let real = real as u64; // Wraps where it is negative, and so does the sum.
        self.means.held_bytes.fetch_add(real, Ordering::SeqCst);
        if !self.has_name.load(Ordering::SeqCst) {
            self.means.unnamed_bytes.fetch_add(real, Ordering::SeqCst);
        }
    }
}

impl Drop for CacheFile {
    fn drop(&mut self) {
        let held = self.held_bytes();
        self.means.held_bytes.fetch_sub(held, Ordering::SeqCst);
        if !*self.has_name.get_mut() {
            self.means.unnamed_bytes.fetch_sub(held, Ordering::SeqCst);
        }
        self.means.note_unmapped();
    }
}

/// The part of bytes that begin with the first of some pieces.
fn slice_of<'a>(bytes: &'a [u8], pieces: &Pieces, place: &Range<u64>) -> io::Result<&'a [u8]> {
    let start = pieces.start * PIECE_BYTES;
    bytes
        .get((place.start - start) as usize..(place.end - start) as usize)
        .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// Notes the checksums of pieces that follow each other.
fn note_sums(record: &mut Record, run: &Pieces, bytes: &[u8]) {
    for (piece, part) in run.clone().zip(bytes.chunks(PIECE_BYTES as usize)) {
        record.sums[(piece % PIECES_PER_EXTENT) as usize] = crc32c::crc32c(part);
    }
}

/// What a file takes up on the disk.
fn held_on_disk(metadata: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    (metadata.blocks() * 512).min(metadata.len().next_multiple_of(PIECE_BYTES))
}
