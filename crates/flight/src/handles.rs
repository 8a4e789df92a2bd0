//! A table of things that outlive a call, by random handles that cannot be guessed.
//!
//! Their number is limited, one user may have a share of it, and idle ones are dropped: when
//! another one is added, and by a periodic task ([`Handles::expire`]).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tonic::{Code, Status};

use crate::refusal::refusal;

/// Divisor of the limit: a user's share.
const USERS_TO_FILL: usize = 8;

/// The number of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// The owner of a thing; none where there are no users, and for an unknown one.
pub(crate) type Owner = Option<u64>;

type Handle = [u8; 16];

/// The things of one kind, by handle, with their owners, limits and last use.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    what: &'static str,
    max: usize,
    idle_max: Duration,
    held: Mutex<HashMap<Handle, Held<T>>>,
}

#[derive(Debug)]
struct Held<T> {
    value: T,
    used: Instant,
    connection: Option<ConnectionId>,
    owner: Owner,
}

impl<T: Clone> Handles<T> {
    pub(crate) fn new(what: &'static str, max: usize, idle_max: Duration) -> Self {
        Self {
            what,
            max,
            idle_max,
            held: Mutex::default(),
        }
    }

    /// Adds a thing, which ends with `connection` if that is given. Only its owner finds it.
    pub(crate) fn keep(
        &self,
        value: T,
        connection: Option<ConnectionId>,
        owner: Owner,
    ) -> Result<Bytes, Status> {
        self.expire();
        let mut held = self.held.lock();
        let full = |whose: &str, max| {
            refusal(
                Code::ResourceExhausted,
                "53000",
                format!("{whose} {max} {} already", self.what),
            )
        };
        if held.len() >= self.max {
            return Err(full("there are", self.max));
        }
        // One user cannot fill the table.
        let share = (self.max / USERS_TO_FILL).max(1);
        let own = || held.values().filter(|it| it.owner == owner).count();
        if owner.is_some() && own() >= share {
            return Err(full("the user has", share));
        }
        let handle: Handle = rand::random();
        held.insert(
            handle,
            Held {
                value,
                used: Instant::now(),
                connection,
                owner,
            },
        );
        Ok(Bytes::copy_from_slice(&handle))
    }

    /// The thing with this handle; notes its use.
    pub(crate) fn get(&self, handle: &[u8], owner: Owner) -> Option<T> {
        let handle: Handle = handle.try_into().ok()?;
        let mut held = self.held.lock();
        let found = held.get_mut(&handle).filter(|held| held.owner == owner)?;
        found.used = Instant::now();
        Some(found.value.clone())
    }

    /// Removes a thing.
    pub(crate) fn remove(&self, handle: &[u8], owner: Owner) -> Option<T> {
        let handle: Handle = handle.try_into().ok()?;
        let mut held = self.held.lock();
        held.get(&handle).filter(|held| held.owner == owner)?;
        let removed = held.remove(&handle);
        // Dropped outside of the lock: its own end may take a while.
        drop(held);
        removed.map(|held| held.value)
    }

    /// Removes things that nobody has used for too long.
    pub(crate) fn expire(&self) {
        self.forget(|held| held.used.elapsed() > self.idle_max);
    }

    /// Removes the things of a connection.
    pub(crate) fn end_connection(&self, connection: ConnectionId) {
        self.forget(|held| held.connection == Some(connection));
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        self.forget(|_| true);
    }

    fn forget(&self, is_over: impl Fn(&Held<T>) -> bool) {
        let mut held = self.held.lock();
        let over: Vec<Held<T>> = held
            .extract_if(|_, it| is_over(it))
            .map(|it| it.1)
            .collect();
        drop(held);
        // Dropped outside of the lock: their own ends may take a while.
        drop(over);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.held.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_goes_with_its_client() {
        let handles = Handles::new("things", 2, Duration::from_secs(60));
        let mine = handles.keep(1, Some(ConnectionId(7)), None).unwrap();
        let other = handles.keep(2, None, None).unwrap();
        let refused = handles.keep(3, None, None).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert_eq!(handles.get(&mine, None), Some(1));
        assert_eq!(handles.get(b"none", None), None);
        assert_eq!(handles.get(&mine, Some(3)), None);
        assert_eq!(handles.remove(&mine, Some(3)), None);
        handles.end_connection(ConnectionId(7));
        assert_eq!(handles.get(&mine, None), None);
        assert_eq!(handles.remove(&other, None), Some(2));
        assert_eq!(handles.len(), 0);
    }

    #[test]
    fn one_user_leaves_room_for_others() {
        let handles = Handles::new("things", 16, Duration::from_secs(60));
        let first = handles.keep(1, None, Some(3)).unwrap();
        handles.keep(2, None, Some(3)).unwrap();
        let refused = handles.keep(3, None, Some(3)).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("the user has 2 things"));
        handles.keep(4, None, Some(4)).unwrap();
        handles.remove(&first, Some(3)).unwrap();
        handles.keep(5, None, Some(3)).unwrap();
        // Without users there is no share.
        for value in 0..13 {
            handles.keep(value, None, None).unwrap();
        }
        assert!(handles.keep(6, None, None).is_err());
    }

    #[test]
    fn what_nobody_uses_goes() {
        let handles = Handles::new("things", 1, Duration::ZERO);
        let first = handles.keep(1, None, None).unwrap();
        // Until the clock has moved.
        while handles.keep(2, None, None).is_err() {}
        assert_eq!(handles.get(&first, None), None);
    }
}
