//! Fetching of missing bytes: one request for all that wait for the same pieces.
//!
//! ```text
//! asked       pieces   ....XXXX..XX........X....
//! there                ......XX.................    by the bits, after a check of what an earlier process left
//! on its way           ....X....................    a flight of somebody else: wait for it
//! flights              .....X..XXXXXXXXXXXXX....    the rest, joined over small gaps, cut to 8 MiB, with neighbours if it is small
//! ```
//!
//! A flight is a task of the cache's runtime: a request, then the bytes are written to the file,
//! then those who wait are woken. Whatever ends the task, its [`Landing`] wakes them: with an error
//! if the bytes are not there. The next who asks begins a new flight.
//!
//! While the cache is rather empty, and large, what lies around a miss is asked for besides, a MiB
//! of a file of some MiB: a query on a file of which nothing is there goes to and fro in it, and
//! each place would be one more wait. It is a flight of its own, so that nobody waits longer for it
//! who wants something else.
//!
//! Limits: 16 requests at once for those who wait, and 8 for what is asked for ahead, of 8 MiB at
//! most, and 64 of a MiB, so 257 MiB are in memory at most. One call has requests for 128 MiB under
//! way, and asks for no more than 64 MiB ahead; nothing is asked for ahead of a file of which 512
//! requests have not ended: an answer of some hundred terms asks for the page of each at once, and
//! what is not asked for then is waited for one by one.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use orrery_storage::Result;

use super::file::CacheFile;
use super::flight::Flight;
use super::means::Failure;
use super::pieces::{PIECE_BYTES, PIECES_PER_EXTENT, Pieces, bytes_of};

/// Longest request.
const REQUEST_PIECES_MAX: u64 = (8 << 20) / PIECE_BYTES;
/// Pieces with a gap up to this come in one request: it costs less to send them again than to ask
/// twice.
const GAP_PIECES_MAX: u64 = (64 << 10) / PIECE_BYTES;
/// A shorter request brings its neighbours up to this.
const NEIGHBOUR_PIECES: u64 = (64 << 10) / PIECE_BYTES;
/// What is asked for of a long range before the first answers are waited for.
const LONG_RANGE_PIECES: u64 = (128 << 20) / PIECE_BYTES;
/// How much one call asks for ahead.
const AHEAD_PIECES_MAX: u64 = (64 << 20) / PIECE_BYTES;
/// With so many requests of a file under way or waiting, nothing more is asked for ahead.
const FLIGHTS_MAX_AHEAD: usize = 512;
/// What is asked for ahead around a miss, ...
const WINDOW_PIECES: u64 = (1 << 20) / PIECE_BYTES;
/// ... if that is at least such a part of the file, so that what is touched next is likely to be in
/// it, ...
const WINDOW_FILE_PARTS: u64 = 64;
/// ... and at most such a part of what the cache may hold, for it is a guess.
const WINDOW_LIMIT_PARTS: u64 = 256;
/// A request ahead is short up to this: a MiB, with what it takes to begin and to end with whole
/// pieces.
const SHORT_PIECES_MAX: u64 = (1 << 20) / PIECE_BYTES + 2;
/// How often somebody looks for pieces that came and are not there: each time somebody else said
/// that they are damaged.
const LOOKS_MAX: usize = 8;
/// Bytes up to this are written where the answer arrives; more would keep other answers waiting.
const WRITE_AT_ONCE_BYTES: usize = 64 << 10;

/// Ends a flight, whatever becomes of its task.
#[derive(Debug)]
struct Landing {
    /// None when it has ended.
    file: Option<Arc<CacheFile>>,
    flight: Flight,
}

/// Whether somebody waits for what is brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Wanted,
    Ahead,
}

impl CacheFile {
    /// Waits until pieces are there, which were touched. The caller has looked whether they are.
    #[cold]
    pub(super) fn fetch(self: &Arc<Self>, pieces: &Pieces) -> Result<()> {
        for window in windows(pieces) {
            self.fetch_window(&window)?;
        }
        Ok(())
    }

    fn fetch_window(self: &Arc<Self>, pieces: &Pieces) -> Result<()> {
        for look in 0..LOOKS_MAX {
            self.check(pieces);
            let (flights, missing) = self.bring(pieces, Purpose::Wanted);
            if look == 0 && missing > 0 {
                let missed = &self.means.counters.missed;
                missed.fetch_add(missing, Ordering::Relaxed);
                self.bring_around(pieces);
            }
            if missing == 0 {
                return Ok(());
            }
            for flight in flights {
                flight
                    .wait()
                    .map_err(|failure| failure.into_error(&self.key))?;
            }
        }
        let what = "its bytes were found damaged again and again";
        Err(Failure::Wrong(what.into()).into_error(&self.key))
    }

    /// Asks for pieces without waiting: those on the disk from the operating system, others from
    /// the origin while there is room.
    pub(super) fn fetch_ahead(self: &Arc<Self>, pieces: &Pieces) {
        let pieces = pieces.start..pieces.end.min(pieces.start + AHEAD_PIECES_MAX);
        self.read_ahead(&bytes_of(&pieces, self.bytes));
        self.look(&pieces);
        if !self
            .means
            .is_short((pieces.end - pieces.start) * PIECE_BYTES)
        {
            let (flights, _) = self.bring(&pieces, Purpose::Ahead);
            if !flights.is_empty() {
                self.bring_around(&pieces);
            }
        }
    }

    /// Asks for what is missing around pieces, without waiting, if that is likely to be of use.
    fn bring_around(self: &Arc<Self>, pieces: &Pieces) {
        let all = self.pieces();
        // Of each file its beginning and its end are read when it is opened, whatever is read after
        // that.
        let is_of_opening = pieces.start == 0 || pieces.end == all.end;
        let is_likely = all.end <= WINDOW_PIECES * WINDOW_FILE_PARTS;
        let limit = self.means.limit;
        if is_of_opening
            || !is_likely
            || pieces.end - pieces.start >= WINDOW_PIECES
            || WINDOW_PIECES * PIECE_BYTES > limit / WINDOW_LIMIT_PARTS
            || self.means.is_short(limit / 2)
        {
            return;
        }
        let first = pieces.start - pieces.start % WINDOW_PIECES;
        let window = first..pieces.end.next_multiple_of(WINDOW_PIECES).min(all.end);
        self.look(&window);
        self.bring(&window, Purpose::Ahead);
    }

    /// Begins flights for what is missing of some pieces. All flights that bring some of them, and
    /// how many are missing.
    fn bring(self: &Arc<Self>, pieces: &Pieces, purpose: Purpose) -> (Vec<Flight>, u64) {
        let mut flights = self.flights.lock();
        if purpose == Purpose::Ahead && flights.len() >= FLIGHTS_MAX_AHEAD {
            return (Vec::new(), 0);
        }
        let mut awaited: Vec<Flight> = flights
            .iter()
            .filter(|flight| flight.overlaps(pieces))
            .cloned()
            .collect();
        let wanted = Missing::of(self, pieces, &awaited, purpose);
        if wanted.count == 0 {
            return (Vec::new(), 0);
        }
        let mut requests = wanted.requests;
        if purpose == Purpose::Wanted && !self.means.is_short(self.means.limit / 4) {
            self.add_neighbours(&mut requests, &flights);
        }
        let new: Vec<Flight> = requests.into_iter().map(Flight::new).collect();
        flights.extend(new.iter().cloned());
        drop(flights);
        for flight in &new {
            let landing = Landing {
                file: Some(Arc::clone(self)),
                flight: flight.clone(),
            };
            let file = Arc::clone(self);
            self.means.runtime.spawn(fly(landing, file, purpose));
        }
        awaited.extend(new);
        (awaited, wanted.count)
    }

    /// Lengthens short requests by what is missing around them.
    fn add_neighbours(&self, requests: &mut [Pieces], flights: &[Flight]) {
        let last = self.pieces().end;
        for at in 0..requests.len() {
            let Pieces { start, end } = requests[at].clone();
            if end - start >= NEIGHBOUR_PIECES {
                continue;
            }
            let before = at.checked_sub(1).map_or(0, |at| requests[at].end);
            let after = requests.get(at + 1).map_or(last, |next| next.start);
            let first = (start - start % NEIGHBOUR_PIECES).max(before);
            let end_max = end.next_multiple_of(NEIGHBOUR_PIECES).min(after);
            let is_free = |&piece: &u64| {
                !self.holds(piece) && !flights.iter().any(|flight| flight.brings(piece))
            };
            let more_before = (first..start).rev().take_while(is_free).count() as u64;
            let more_after = (end..end_max).take_while(is_free).count() as u64;
            requests[at] = start - more_before..end + more_after;
        }
    }

    fn holds(&self, piece: u64) -> bool {
        let held = self.held((piece / PIECES_PER_EXTENT) as usize);
        held & 1 << (piece % PIECES_PER_EXTENT) != 0
    }

    fn is_ready(&self, piece: u64) -> bool {
        let ready = self.extents[(piece / PIECES_PER_EXTENT) as usize].ready();
        ready & 1 << (piece % PIECES_PER_EXTENT) != 0
    }

    /// Writes what a request brought, once more after making room if the disk is full.
    fn land(&self, pieces: &Pieces, bytes: &[u8]) -> Result<(), Failure> {
        let expected = bytes_of(pieces, self.bytes);
        if bytes.len() as u64 != expected.end - expected.start {
            let what = format!(
                "bytes {}..{} were asked for, and {} came",
                expected.start,
                expected.end,
                bytes.len()
            );
            return Err(Failure::Wrong(what.into()));
        }
        self.means.note_fetched(bytes.len() as u64);
        self.means.make_room(bytes.len() as u64);
        self.store(pieces, bytes)
            .or_else(|error| {
                if !is_full(&error) {
                    return Err(error);
                }
                self.means.free(2 * bytes.len() as u64);
                self.store(pieces, bytes)
            })
            .map_err(|error| Failure::local(self.path(), &error))
    }
}

/// What is missing, as requests without neighbours.
struct Missing {
    requests: Vec<Pieces>,
    /// All pieces that are not there, also those on their way.
    count: u64,
}

impl Missing {
    fn of(file: &CacheFile, pieces: &Pieces, on_their_way: &[Flight], purpose: Purpose) -> Self {
        let mut requests: Vec<Pieces> = Vec::new();
        let mut count = 0;
        let mut can_join = false;
        for piece in pieces.clone() {
            // What is held and wrong has been found out, if somebody waits.
            let is_there = match purpose {
                Purpose::Wanted => file.is_ready(piece),
                Purpose::Ahead => file.holds(piece),
            };
            if is_there {
                continue;
            }
            count += 1;
            if on_their_way.iter().any(|flight| flight.brings(piece)) {
                can_join = false;
                continue;
            }
            match requests.last_mut() {
                Some(last)
                    if can_join
                        && piece - last.end <= GAP_PIECES_MAX
                        && piece - last.start < REQUEST_PIECES_MAX =>
                {
                    last.end = piece + 1;
                }
                _ => requests.push(piece..piece + 1),
            }
            can_join = true;
        }
        Self { requests, count }
    }
}

/// A flight from its start to its end.
///
/// The landing comes first, so that it is dropped last.
async fn fly(mut landing: Landing, file: Arc<CacheFile>, purpose: Purpose) {
    let means = &file.means;
    let Range { start, end } = landing.flight.pieces().clone();
    let permits = match purpose {
        Purpose::Wanted => &means.wanted,
        Purpose::Ahead if end - start <= SHORT_PIECES_MAX => &means.short_ahead,
        Purpose::Ahead => &means.ahead,
    };
    let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
        return; // Nobody closes them; if so, the landing says that the flight was given up.
    };
    means.counters.requests.fetch_add(1, Ordering::Relaxed);
    let range = bytes_of(landing.flight.pieces(), file.bytes);
    let bytes = match file.means.origin.get_range(&file.key, range).await {
        Ok(bytes) => bytes,
        Err(error) => {
            drop(file);
            return landing.end(Err(Failure::Origin(Arc::new(error))));
        }
    };
    let is_small = bytes.len() <= WRITE_AT_ONCE_BYTES;
    let writes_at_once = is_small && !means.is_short(WRITE_AT_ONCE_BYTES as u64);
    let write = move || {
        let outcome = file.land(landing.flight.pieces(), &bytes);
        // The bytes go before others may come.
        drop((file, bytes, permit));
        landing.end(outcome);
    };
    if writes_at_once {
        write();
    } else {
        // If the runtime ends before, the closure is dropped, and the landing with it.
        tokio::task::spawn_blocking(write);
    }
}

impl Landing {
    /// No flight first, then the outcome: who is woken and finds pieces missing can begin another
    /// one. And no hold on the file any more: who is woken may be the last one who has it, and
    /// close the cache, and with that the directory is free.
    fn end(&mut self, outcome: Result<(), Failure>) {
        let Some(file) = self.file.take() else {
            return;
        };
        let is_another = |flight: &Flight| !flight.is_same(&self.flight);
        file.flights.lock().retain(is_another);
        drop(file);
        self.flight.end(outcome);
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.end(Err(Failure::GivenUp));
    }
}

fn windows(pieces: &Pieces) -> impl Iterator<Item = Pieces> {
    let Range { mut start, end } = pieces.clone();
    std::iter::from_fn(move || {
        let window = start..end.min(start + LONG_RANGE_PIECES);
        start = window.end;
        (!window.is_empty()).then_some(window)
    })
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}
