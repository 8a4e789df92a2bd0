//! In-process workers for tests, with calls that can be made to fail.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;

use crate::network::{Answer, Network, NetworkError};
use crate::worker::Workers;

/// Some members that reach each other.
#[derive(Debug)]
pub struct InProcess {
    members: Vec<(String, OnceLock<Weak<Workers>>)>,
    /// How many more messages each of these gives before it is lost.
    left: Mutex<HashMap<String, usize>>,
    calls: AtomicUsize,
    bytes: AtomicUsize,
}

/// One of them.
#[derive(Debug)]
struct Member {
    all: Arc<InProcess>,
    name: String,
}

impl InProcess {
    /// Creates so many in-process members; smaller queries run where they are asked.
    pub fn members(count: usize, least_rows: f64) -> (Arc<Self>, Vec<Arc<Workers>>) {
        let names = (1..=count).map(|number| (format!("worker {number}"), OnceLock::new()));
        let all = Arc::new(Self {
            members: names.collect(),
            left: Mutex::default(),
            calls: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        });
        let workers = all.members.iter().map(|(name, place)| {
            let member = Member {
                all: Arc::clone(&all),
                name: name.clone(),
            };
            let workers = Workers::new(Arc::new(member), least_rows);
            _ = place.set(Arc::downgrade(&workers));
            workers
        });
        let workers = workers.collect();
        (all, workers)
    }

    /// A member is lost after so many more messages that it gives; 0: it cannot be reached.
    pub fn lose_after(&self, member: &str, messages: usize) {
        self.left.lock().insert(member.to_owned(), messages);
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Bytes that went from one member to another one.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn is_lost(&self, member: &str) -> bool {
        self.left.lock().get(member) == Some(&0)
    }

    /// Whether a member may give a message.
    fn gives(&self, member: &str) -> bool {
        match self.left.lock().get_mut(member) {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

impl Network for Member {
    fn members(&self) -> Vec<String> {
        let members = self.all.members.iter();
        members.map(|(name, _)| name.clone()).collect()
    }

    fn here(&self) -> String {
        self.name.clone()
    }

    fn call(
        &self,
        member: &str,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Answer, NetworkError>> {
        let all = Arc::clone(&self.all);
        let (from, to) = (self.name.clone(), member.to_owned());
        async move {
            all.calls.fetch_add(1, Ordering::Relaxed);
            let lost = |reason: &str| NetworkError::Lost {
                member: to.clone(),
                reason: reason.to_owned(),
            };
            let known = all.members.iter().find(|(name, _)| *name == to);
            let workers = known
                .and_then(|(_, place)| place.get())
                .and_then(Weak::upgrade);
            let workers = workers.ok_or_else(|| lost("nobody has this name"))?;
            if all.is_lost(&to) {
                return Err(lost("it cannot be reached"));
            }
            let broke_off = lost("it broke off");
            let answer = workers.answer(request).map(move |message| {
                if !all.gives(&to) {
                    return Err(broke_off.clone());
                }
                if from != to {
                    let bytes = message.as_ref().map_or(0, Bytes::len);
                    all.bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                message
            });
            Ok(answer.boxed())
        }
        .boxed()
    }
}
