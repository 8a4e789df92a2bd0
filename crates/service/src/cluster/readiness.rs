//! Readiness of a server, for `GET /health/ready`: whether clients may ask it and other nodes rely
//! on it.
//!
//! A cluster node is ready once it has all acknowledged commits and answers from them: a complete
//! log does not help while the node's state is stale. Until then no other node may be stopped, for
//! the remaining majority could lack a commit. The endpoint needs no authentication, so the result
//! is computed once for all requests within `KEPT`.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// How long a result is cached.
const KEPT: Duration = Duration::from_millis(500);

/// Ready, or the reason why not.
pub type Ready = Result<(), String>;

/// The last result, cached.
#[derive(Debug, Default)]
pub struct Readiness(Mutex<Option<(Instant, Ready)>>);

impl Readiness {
    /// The cached result, or that of `look`. One caller looks while the others wait.
    pub async fn of(&self, look: impl Future<Output = Ready>) -> Ready {
        let mut last = self.0.lock().await;
        if let Some((when, ready)) = &*last
            && when.elapsed() < KEPT
        {
            return ready.clone();
        }
        let found = look.await;
        let before = last.as_ref().map(|(_, ready)| ready.is_ok());
        match &found {
            Ok(()) if before == Some(false) => tracing::info!("this server is ready again"),
            Err(reason) if before != Some(false) => {
                tracing::warn!("this server is not ready: {reason}");
            }
            Ok(()) | Err(_) => {}
        }
        *last = Some((Instant::now(), found.clone()));
        found
    }
}

/// A check of the disk, at most one at a time: one that hangs blocks one thread, however many
/// callers ask.
#[derive(Debug, Default)]
pub struct OneLook(Mutex<Option<JoinHandle<Ready>>>);

impl OneLook {
    /// The result of `look`, or of an earlier check that still runs.
    pub async fn within(
        &self,
        time_max: Duration,
        look: impl FnOnce() -> Ready + Send + 'static,
    ) -> Ready {
        let mut running = self.0.lock().await;
        let looking = running.get_or_insert_with(|| tokio::task::spawn_blocking(look));
        let Ok(looked) = tokio::time::timeout(time_max, looking).await else {
            let seconds = time_max.as_secs();
            return Err(format!("its state could not be read within {seconds} s"));
        };
        *running = None;
        looked.unwrap_or_else(|error| Err(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn many_who_ask_at_once_cost_one_look() {
        let (readiness, looks) = (Readiness::default(), AtomicUsize::new(0));
        let look = async || {
            looks.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Err("it lacks 2 files".to_owned())
        };
        let ask = || readiness.of(look());
        let answers = futures::future::join_all((0..50).map(|_| ask())).await;
        assert!(answers.iter().all(Result::is_err));
        assert_eq!(looks.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn what_was_found_out_is_not_told_for_long() {
        let readiness = Readiness::default();
        let first = readiness.of(async { Err("no leader".to_owned()) }).await;
        assert_eq!(first, Err("no leader".to_owned()));
        if let Some((when, _)) = &mut *readiness.0.lock().await {
            *when = Instant::now().checked_sub(KEPT).unwrap();
        }
        assert_eq!(readiness.of(async { Ok(()) }).await, Ok(()));
    }

    #[tokio::test]
    async fn a_look_that_hangs_is_one_however_many_ask() {
        let (look, begun) = (OneLook::default(), Arc::new(AtomicUsize::new(0)));
        let (release, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(parking_lot::Mutex::new(hangs));
        let looked = async |time_max| {
            let (begun, hangs) = (Arc::clone(&begun), Arc::clone(&hangs));
            let hanging = move || {
                begun.fetch_add(1, Ordering::SeqCst);
                hangs.lock().recv().map_err(|error| error.to_string())
            };
            look.within(time_max, hanging).await
        };
        for _ in 0..5 {
            let late = looked(Duration::from_millis(20)).await.unwrap_err();
            assert!(late.contains("could not be read within"), "{late}");
        }
        release.send(()).unwrap();
        looked(Duration::from_secs(60)).await.unwrap();
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        // The next call starts a new check.
        release.send(()).unwrap();
        looked(Duration::from_secs(60)).await.unwrap();
        assert_eq!(begun.load(Ordering::SeqCst), 2);
    }
}
