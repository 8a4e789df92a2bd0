//! Log files: an image in a local file, and one object per sync.
//!
//! ```text
//! writer     write_at -> image, dirty range
//!            sync     -> the dirty range as the next object, put only where none is
//! reader     objects  -> image -> the storage's reader of logs
//! ```
//!
//! One writer at a time adds objects. When another takes over, it puts a fence behind those that
//! are there ([`LogImage::fence`]): a put of the writer before it is either in front of the fence,
//! where the new one reads it, or is refused, and then its turn is lost for good.
//!
//! A follower asks for the next object when it reads to the end of the image; who writes asks for
//! none, for nobody else adds any.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use orrery_storage::io::LogFile;
use orrery_storage::{Error, Result};
use parking_lot::Mutex;

use crate::error::{Asked, ObjectError};
use crate::files::log_object::{LogContent, LogObject};
use crate::files::view::log_folder;
use crate::stores::store::{Condition, Put, Store};

/// Objects that are read at the same time.
const READS_AT_ONCE: usize = 16;
/// What one sync puts beyond this is put as several objects.
const OBJECT_BYTES_MAX: u64 = 64 << 20;
/// Objects that the writer before may put while a fence looks for its place.
const FENCE_TRIES_MAX: u32 = 1000;

/// A log file as far as it is known here.
#[derive(Debug)]
pub(crate) struct LogImage {
    id: String,
    store: Arc<Store>,
    file: File,
    /// Held while objects are read, or put. Taken before `state`.
    asking: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Objects whose bytes are in the image.
    applied: u64,
    /// How many there are, where nobody but this process can add one.
    end: Option<u64>,
    /// Whether it was ever looked how many there are.
    is_listed: bool,
    length: u64,
    /// The first byte that was written and not put.
    dirty_from: Option<u64>,
    /// Whether something is on its way to the store, of which nobody knows yet whether it will be
    /// there.
    is_putting: bool,
    /// The greatest turn of an object so far.
    epoch: u64,
    /// The turn in which this process writes it; zero where it does not.
    turn: u64,
    /// Why nothing more can be written.
    failure: Option<String>,
}

impl LogImage {
    /// The image of a log, of which nothing is known yet.
    pub(crate) fn of(store: &Arc<Store>, id: &str, file: File) -> Self {
        Self {
            id: id.to_owned(),
            store: Arc::clone(store),
            file,
            asking: Mutex::new(()),
            state: Mutex::new(State {
                applied: 0,
                end: None,
                is_listed: false,
                length: 0,
                dirty_from: None,
                is_putting: false,
                epoch: 0,
                turn: 0,
                failure: None,
            }),
        }
    }

    /// That of a log which begins now.
    pub(crate) fn begin(store: &Arc<Store>, id: &str, file: File, epoch: u64) -> Self {
        let image = Self::of(store, id, file);
        *image.state.lock() = State {
            applied: 0,
            end: Some(0),
            is_listed: true,
            length: 0,
            // Also an empty file is there after a sync.
            dirty_from: Some(0),
            is_putting: false,
            epoch,
            turn: epoch,
            failure: None,
        };
        image
    }

    fn object(&self, number: u64) -> String {
        format!("{}{number:010}", log_folder(&self.id))
    }

    /// The turn to write it is over. Whether the image can be gone on with: it has nothing that the
    /// store has not.
    pub(crate) fn end_turn(&self) -> bool {
        let mut state = self.state.lock();
        (state.end, state.turn) = (None, 0);
        state.dirty_from.is_none() && !state.is_putting && state.failure.is_none()
    }

    /// Reads the objects that are there and not in the image.
    pub(crate) fn refresh(&self) -> Asked<()> {
        {
            let state = self.state.lock();
            if state.end == Some(state.applied) {
                return Ok(());
            }
        }
        let _asking = self.asking.lock();
        let (from, end, is_listed) = {
            let state = self.state.lock();
            (state.applied, state.end, state.is_listed)
        };
        if let Some(end) = end {
            return self.read_between(from, end);
        }
        if !is_listed {
            let listed = self.listed_end()?;
            self.read_between(from, listed)?;
            self.state.lock().is_listed = true;
        }
        loop {
            let number = self.state.lock().applied;
            let object = self.object(number);
            let found = self
                .store
                .wait(|store| async move { store.get(&object).await })?;
            match found {
                Some(found) => self.apply(number, &found.bytes)?,
                None => return Ok(()),
            }
        }
    }

    /// How many objects a listing shows.
    fn listed_end(&self) -> Asked<u64> {
        let folder = log_folder(&self.id);
        let listed = self
            .store
            .wait(|store| async move { store.list(&folder).await })?;
        let numbers = listed
            .iter()
            .filter_map(|(name, _)| name.rsplit('/').next()?.parse::<u64>().ok());
        Ok(numbers.max().map_or(0, |last| last + 1))
    }

    fn read_between(&self, from: u64, end: u64) -> Asked<()> {
        for first in (from..end).step_by(READS_AT_ONCE) {
            let names: Vec<String> = (first..end.min(first + READS_AT_ONCE as u64))
                .map(|number| self.object(number))
                .collect();
            let found: Vec<Bytes> = self.store.wait(|store| async move {
                futures::stream::iter(names)
                    .map(|name| {
                        let store = Arc::clone(&store);
                        async move {
                            let found = store.get(&name).await?;
                            let missing =
                                || store.damaged(&name, "it is missing, and others follow");
                            found.map(|found| found.bytes).ok_or_else(missing)
                        }
                    })
                    .buffered(READS_AT_ONCE)
                    .try_collect()
                    .await
            })?;
            for (number, bytes) in (first..).zip(&found) {
                self.apply(number, bytes)?;
            }
        }
        Ok(())
    }

    fn apply(&self, number: u64, bytes: &Bytes) -> Asked<()> {
        let object = self.parse(number, bytes)?;
        let mut state = self.state.lock();
        if object.epoch < state.epoch {
            let what = "a writer put it whose turn was over";
            return Err(self.store.damaged(&self.object(number), what));
        }
        if let LogContent::Bytes {
            offset,
            length,
            bytes,
        } = &object.content
        {
            if *offset > state.length {
                let what = "there is a gap before its bytes";
                return Err(self.store.damaged(&self.object(number), what));
            }
            let written = self.file.write_all_at(bytes, *offset);
            let written = written.and_then(|()| self.file.set_len(*length));
            written.map_err(|source| self.local("write", source))?;
            state.length = *length;
        }
        state.epoch = object.epoch;
        state.applied = number + 1;
        Ok(())
    }

    fn parse(&self, number: u64, bytes: &Bytes) -> Asked<LogObject> {
        let parsed = LogObject::parse(bytes);
        parsed.map_err(|what| self.store.damaged(&self.object(number), what))
    }

    fn local(&self, operation: &'static str, source: std::io::Error) -> ObjectError {
        ObjectError::Local {
            operation,
            path: PathBuf::from(format!("the copy of log {}", self.id)),
            source,
        }
    }

    /// Puts a fence behind all objects, so that nobody of an earlier turn can add one. When it
    /// returns, it is known how many there are.
    ///
    /// All objects before it are read first, which who goes on with the log needs anyway: where one
    /// is of a later turn, this one is over, and a fence behind it would make of the log what
    /// nobody can read.
    pub(crate) fn fence(&self, epoch: u64) -> Asked<()> {
        let _asking = self.asking.lock();
        let applied = self.state.lock().applied;
        let mut number = self.listed_end()?.max(applied);
        self.read_between(applied, number)?;
        let fence = LogObject {
            epoch,
            content: LogContent::Fence,
        };
        for _ in 0..FENCE_TRIES_MAX {
            if self.state.lock().epoch > epoch {
                return Err(ObjectError::Task {
                    what: "another process has taken over the writing of the database meanwhile"
                        .to_owned(),
                });
            }
            if self.put(number, &fence.to_bytes())? {
                let mut state = self.state.lock();
                (state.end, state.turn) = (Some(number + 1), epoch);
                state.is_listed = true;
                return Ok(());
            }
            // The writer before was faster: what it put counts. Or one that comes later was.
            self.read_between(number, number + 1)?;
            number += 1;
        }
        let what = "another writer goes on adding to the log";
        Err(self.store.damaged(&self.object(number), what))
    }

    /// Puts an object where none is. False if there is another.
    fn put(&self, number: u64, bytes: &Bytes) -> Asked<bool> {
        let (object, bytes) = (self.object(number), bytes.clone());
        self.store.wait(|store| async move {
            let mut tries = 0;
            loop {
                let answer = store
                    .put_if(&object, bytes.clone(), &Condition::Absent)
                    .await;
                tries += 1;
                match answer {
                    Ok(Put::Done(_)) => return Ok(true),
                    // Perhaps it is ours, and the answer was lost.
                    Ok(Put::Refused) => match store.get(&object).await? {
                        Some(found) => return Ok(found.bytes == bytes),
                        None if tries >= store.timing.attempts_max => {
                            let what = "it can be neither put nor read";
                            return Err(store.damaged(&object, what));
                        }
                        None => {}
                    },
                    Err(error) if error.is_refusal() || tries >= store.timing.attempts_max => {
                        return Err(error.after(tries));
                    }
                    Err(_) => {}
                }
                store.pause(tries - 1).await;
            }
        })
    }

    /// Whether something in it could not be put, and nothing more can be.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.lock().failure.is_some()
    }

    /// Whether there is no object of it, where this process has not begun it: then the log was
    /// deleted.
    pub(crate) fn is_absent(&self) -> bool {
        let state = self.state.lock();
        state.applied == 0 && state.end.is_none()
    }

    /// Bytes of the image from an offset on, as many as there are and fit.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<usize> {
        let state = self.state.lock();
        let there = state.length.saturating_sub(offset).min(out.len() as u64);
        self.file
            .read_exact_at(&mut out[..there as usize], offset)?;
        Ok(there as usize)
    }

    /// The image's length.
    pub(crate) fn length(&self) -> u64 {
        self.state.lock().length
    }
}

/// A log file that is written in a turn.
#[derive(Debug)]
pub(crate) struct ObjectLog {
    pub(crate) image: Arc<LogImage>,
    /// As the storage knows it.
    pub(crate) path: PathBuf,
    pub(crate) epoch: u64,
}

impl ObjectLog {
    /// Changes the image from a byte on; `change` gets the length before, and gives that after it.
    fn write(
        &self,
        from: u64,
        change: impl FnOnce(&File, u64) -> std::io::Result<u64>,
    ) -> Result<()> {
        let mut state = self.image.state.lock();
        let from = from.min(state.length);
        // Also after an error any part may have been written.
        state.dirty_from = Some(state.dirty_from.map_or(from, |before| before.min(from)));
        state.length = change(&self.image.file, state.length)
            .map_err(|error| Error::from_io(&self.path, "write", error))?;
        Ok(())
    }

    /// Takes what was written since the last sync.
    fn take_dirty(&self) -> Result<Option<(u64, Vec<u8>)>> {
        let mut state = self.image.state.lock();
        if let Some(failure) = &state.failure {
            return Err(self.stopped(failure));
        }
        let Some(from) = state.dirty_from else {
            return Ok(None);
        };
        let mut bytes = vec![0; (state.length - from) as usize];
        let read = self.image.file.read_exact_at(&mut bytes, from);
        read.map_err(|error| Error::from_io(&self.path, "read", error))?;
        state.dirty_from = None;
        state.is_putting = true;
        Ok(Some((from, bytes)))
    }

    fn put_dirty(&self, from: u64, bytes: Vec<u8>) -> Result<()> {
        let bytes = Bytes::from(bytes);
        let mut at = 0;
        loop {
            let end = (at + OBJECT_BYTES_MAX).min(bytes.len() as u64);
            let (number, turn) = {
                let state = self.image.state.lock();
                (state.end, state.turn)
            };
            let Some(number) = number.filter(|_| turn == self.epoch) else {
                return Err(self.stopped("the turn to write it is over"));
            };
            let object = LogObject {
                epoch: self.epoch,
                content: LogContent::Bytes {
                    offset: from + at,
                    length: from + end,
                    bytes: bytes.slice(at as usize..end as usize),
                },
            };
            let put = self.image.put(number, &object.to_bytes());
            if !put.map_err(|error| error.at(&self.path, "sync"))? {
                return Err(self.stopped(
                    "another process has taken over the writing of the database; what was not acknowledged may be lost",
                ));
            }
            let mut state = self.image.state.lock();
            state.end = Some(number + 1);
            state.applied = number + 1;
            state.epoch = self.epoch;
            at = end;
            if at == bytes.len() as u64 {
                return Ok(());
            }
        }
    }

    fn stopped(&self, what: &str) -> Error {
        Error::WritingStopped {
            path: self.path.clone(),
            what: what.to_owned(),
        }
    }
}

impl LogFile for ObjectLog {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(offset, |file, length| {
            file.write_all_at(bytes, offset)?;
            Ok(length.max(offset + bytes.len() as u64))
        })
    }

    fn sync(&self) -> Result<()> {
        let _asking = self.image.asking.lock();
        let Some((from, bytes)) = self.take_dirty()? else {
            return Ok(());
        };
        let put = self.put_dirty(from, bytes);
        let mut state = self.image.state.lock();
        state.is_putting = false;
        if let Err(error) = &put {
            let failure = error.to_string();
            state.failure.get_or_insert(failure);
        }
        drop(state);
        put
    }

    fn set_length(&self, bytes: u64) -> Result<()> {
        self.write(bytes, |file, _| {
            file.set_len(bytes)?;
            Ok(bytes)
        })
    }

    fn length(&self) -> Result<u64> {
        Ok(self.image.length())
    }

    fn should_end(&self) -> bool {
        let end = self.image.state.lock().end;
        end.is_some_and(|end| end >= self.image.store.timing.log_objects_max)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
