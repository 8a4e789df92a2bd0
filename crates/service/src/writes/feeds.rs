//! How many follow the changes of a server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use orrery_access::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::ServiceError;
use crate::metering::Exceeded;

/// Feeds that read the log at the same time.
const READING_MAX: usize = 16;
/// One user, or one address of nobody known, may have one part of so many of all feeds.
const SHARE_PART: usize = 4;

/// The bounds of all feeds of a server.
#[derive(Debug)]
pub struct Feeds {
    feeds: Arc<Semaphore>,
    feeds_max: usize,
    holders: Arc<Mutex<HashMap<FeedHolder, usize>>>,
    /// Feeds that read the log at the same time.
    pub reading: Arc<Semaphore>,
}

/// Whose feeds are counted together, where the database has users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeedHolder {
    /// A user.
    User(UserId),
    /// Nobody known, from this network.
    Address(Option<IpAddr>),
}

/// A feed among all; dropped when it ends.
#[derive(Debug)]
pub struct FeedPlace {
    _of_all: OwnedSemaphorePermit,
    holder: Option<FeedHolder>,
    holders: Arc<Mutex<HashMap<FeedHolder, usize>>>,
}

impl Feeds {
    /// For so many feeds.
    pub fn new(feeds_max: usize) -> Self {
        Self {
            feeds: Arc::new(Semaphore::new(feeds_max)),
            feeds_max,
            holders: Arc::default(),
            reading: Arc::new(Semaphore::new(READING_MAX)),
        }
    }

    /// How many there are.
    pub fn open(&self) -> usize {
        self.feeds_max - self.feeds.available_permits().min(self.feeds_max)
    }

    /// A place for one more.
    ///
    /// # Errors
    /// When there are as many as there may be, of all or of this holder.
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
        // Where nobody is told apart, all share all of them.
        for _ in 0..5 {
            held.push(feeds.enter(None).unwrap());
        }
        let refused = feeds.enter(None).unwrap_err();
        assert!(matches!(refused, ServiceError::FeedsBusy { feeds_max: 8 }));
        drop(held);
        assert!(feeds.holders.lock().unwrap().is_empty());
    }
}
