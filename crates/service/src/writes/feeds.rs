//! Limits on the clients that follow a server's change feed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use orrery_access::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::ServiceError;
use crate::metering::Exceeded;

/// Feeds that read the log at the same time.
const READING_MAX: usize = 16;
/// The share of one user, or of one unknown address: this fraction of all feeds.
const SHARE_PART: usize = 4;

/// The feeds of a server, and their limits.
#[derive(Debug)]
pub struct Feeds {
    feeds: Arc<Semaphore>,
    feeds_max: usize,
    holders: Arc<Mutex<HashMap<FeedHolder, usize>>>,
    /// Feeds that read the log at the same time.
    pub reading: Arc<Semaphore>,
}

/// The holder of feeds that are counted together, if the database has users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeedHolder {
    /// A user.
    User(UserId),
    /// An unknown sender, by network.
    Address(Option<IpAddr>),
}

/// A feed, counted until this is dropped.
#[derive(Debug)]
pub struct FeedPlace {
    _of_all: OwnedSemaphorePermit,
    holder: Option<FeedHolder>,
    holders: Arc<Mutex<HashMap<FeedHolder, usize>>>,
}

impl Feeds {
    /// Creates the limits for this many feeds.
    pub fn new(feeds_max: usize) -> Self {
        Self {
            feeds: Arc::new(Semaphore::new(feeds_max)),
            feeds_max,
            holders: Arc::default(),
            reading: Arc::new(Semaphore::new(READING_MAX)),
        }
    }

    /// Number of open feeds.
    pub fn open(&self) -> usize {
        self.feeds_max - self.feeds.available_permits().min(self.feeds_max)
    }

    /// Counts one more feed.
    ///
    /// # Errors
    /// When the maximum of all feeds, or of this holder's, is reached.
    pub fn enter(&self, holder: Option<FeedHolder>) -> Result<FeedPlace, ServiceError> {
        let of_all = Arc::clone(&self.feeds).try_acquire_owned();
        let of_all = of_all.map_err(|_none| ServiceError::FeedsBusy {
            feeds_max: self.feeds_max,
        })?;
        if let Some(holder) = holder {
            let share = (self.feeds_max / SHARE_PART).max(1);
            let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
            let open = holders.entry(holder).or_default();
            if *open >= share {
                let max = u32::try_from(share).unwrap_or(u32::MAX);
                return Err(Exceeded::Concurrent { max }.into());
            }
            *open += 1;
        }
        Ok(FeedPlace {
            _of_all: of_all,
            holder,
            holders: Arc::clone(&self.holders),
        })
    }
}

impl Drop for FeedPlace {
    fn drop(&mut self) {
        let Some(holder) = self.holder else { return };
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = holders.get_mut(&holder) {
            *open -= 1;
            if *open == 0 {
                holders.remove(&holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_a_share_of_the_feeds_and_leaves_the_rest_to_others() {
        let feeds = Feeds::new(8);
        let user = |id| Some(FeedHolder::User(UserId(id)));
        let mut held = vec![feeds.enter(user(1)).unwrap(), feeds.enter(user(1)).unwrap()];
        let refused = feeds.enter(user(1)).unwrap_err();
        assert!(matches!(
            refused,
            ServiceError::Exceeded(Exceeded::Concurrent { max: 2 })
        ));
        held.push(feeds.enter(user(2)).unwrap());
        drop(held.remove(0));
        held.push(feeds.enter(user(1)).unwrap());
        // Without holders, all feeds are shared.
        for _ in 0..5 {
            held.push(feeds.enter(None).unwrap());
        }
        let refused = feeds.enter(None).unwrap_err();
        assert!(matches!(refused, ServiceError::FeedsBusy { feeds_max: 8 }));
        drop(held);
        assert!(feeds.holders.lock().unwrap().is_empty());
    }
}
