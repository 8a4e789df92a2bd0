//! Cancel requests: a second connection stops a statement with the number and the secret key of the
//! statement's connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

/// The open connections, by number.
#[derive(Debug, Default)]
pub(crate) struct CancelKeys {
    next: AtomicI32,
    open: Mutex<HashMap<i32, (i32, watch::Sender<u64>)>>,
}

/// A connection's number and key; unregistered when dropped.
#[derive(Debug)]
pub(crate) struct CancelKey {
    pub(crate) process: i32,
    pub(crate) secret: i32,
    asked: watch::Receiver<u64>,
    keys: Arc<CancelKeys>,
}

impl CancelKeys {
    /// Makes a key for a new connection.
    pub(crate) fn key(self: &Arc<Self>) -> CancelKey {
        let process = self.next.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let secret = rand::random::<i32>();
        let (sender, asked) = watch::channel(0);
        self.open.lock().insert(process, (secret, sender));
        CancelKey {
            process,
            secret,
            asked,
            keys: Arc::clone(self),
        }
    }

    /// Stops the current statement of a connection.
    ///
    /// The asker gets no answer, whether the key was right or not.
    pub(crate) fn cancel(&self, process: i32, secret: i32) {
        if let Some((right, sender)) = self.open.lock().get(&process)
            && *right == secret
        {
            sender.send_modify(|asked| *asked += 1);
        }
    }
}

impl CancelKey {
    /// Ignores the requests that came before.
    pub(crate) fn forget(&mut self) {
        self.asked.borrow_and_update();
    }

    /// Completes when the statement has to stop.
    pub(crate) async fn asked(&mut self) {
        if self.asked.changed().await.is_err() {
            // `keys` holds the sender as long as this key lives.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        self.keys.open.lock().remove(&self.process);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn only_who_has_the_key_stops_a_statement_and_only_the_present_one() {
        let keys = Arc::new(CancelKeys::default());
        let mut key = keys.key();
        keys.cancel(key.process, key.secret.wrapping_add(1));
        assert!(key.asked().now_or_never().is_none());
        keys.cancel(key.process, key.secret);
        assert!(key.asked().now_or_never().is_some());
        keys.cancel(key.process, key.secret);
        key.forget();
        assert!(key.asked().now_or_never().is_none());
        let (process, secret) = (key.process, key.secret);
        drop(key);
        keys.cancel(process, secret);
        assert!(keys.open.lock().is_empty());
    }
}
