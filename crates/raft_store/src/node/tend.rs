//! A node's background work: fetching missing files, removing unreferenced ones, snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::error::Result;
use crate::node::core::Core;
use crate::node::fetch;

/// How often a node looks, without being told, whether it lacks files.
const FETCH_PAUSE: Duration = Duration::from_secs(5);
/// How often a node looks for files that nobody needs.
const SWEEP_PAUSE: Duration = Duration::from_secs(10);
/// Readers that have begun find a file this long after its last object went.
const DROPPED_KEPT: Duration = Duration::from_secs(60);
/// A file that neither the state nor the log names is removed after this time, on the clock of this
/// process: its put has failed by then.
const UNNAMED_KEPT: Duration = Duration::from_secs(3_600);
/// How often the size of the log is looked at.
const LOG_PAUSE: Duration = Duration::from_secs(1);
/// A snapshot that would purge fewer entries is not made for the log's size.
const ENTRIES_MIN: u64 = 256;

/// Starts the tasks.
pub(crate) fn start(core: &Arc<Core>) -> Vec<JoinHandle<()>> {
    vec![
        tokio::spawn(fetch_missing(core.clone())),
        tokio::spawn(sweep_always(core.clone())),
        tokio::spawn(bound_log(core.clone())),
    ]
}

async fn fetch_missing(core: Arc<Core>) {
    loop {
        let _ = timeout(FETCH_PAUSE, core.shared.files_added.notified()).await;
        let missing = match fetch::missing(&core).await {
            Ok(missing) => missing,
            Err(error) => {
                tracing::warn!(%error, "cannot list this node's files");
                continue;
            }
        };
        for file in missing {
            // An upload to this node may be under way: it ends sooner than a fetch would.
            if core.shared.state.read().file(&file.id).is_none() {
                continue;
            }
            if let Err(error) = fetch::whole(&core, &file).await {
                tracing::warn!(file = file.id, %error, "a file that this node lacks was not fetched; it tries again");
            }
        }
    }
}

async fn sweep_always(core: Arc<Core>) {
    let mut unnamed = BTreeMap::new();
    loop {
        sleep(SWEEP_PAUSE).await;
        if let Err(error) = sweep(&core, &mut unnamed).await {
            tracing::warn!(%error, "files that nobody needs were not removed; tries again");
        }
    }
}

/// Removes what was dropped a while ago, and what nobody has named for long.
async fn sweep(core: &Core, unnamed: &mut BTreeMap<String, Instant>) -> Result<()> {
    let now = Instant::now();
    let mut due = BTreeSet::new();
    core.shared.dropped.lock().retain(|(since, id)| {
        let is_due = now.duration_since(*since) >= DROPPED_KEPT;
        if is_due {
            due.insert(id.clone());
        }
        !is_due
    });
    let names = core.files.names().await?;
    let in_log = core.log.files_named();
    let mut named = in_log;
    named.extend(core.shared.state.read().files().map(|file| file.id.clone()));
    unnamed.retain(|name, _| names.contains(name));
    for name in names {
        let id = name.strip_suffix(".part").unwrap_or(&name);
        let is_whole = id.len() == name.len();
        if is_whole && core.shared.state.read().file(id).is_some() {
            unnamed.remove(&name);
            due.remove(id);
            continue;
        }
        // A dropped file is still named by its put in the log.
        let is_due = due.contains(id);
        if !is_due && is_whole && named.contains(id) {
            unnamed.remove(&name);
            continue;
        }
        let since = *unnamed.entry(name.clone()).or_insert(now);
        if is_due || now.duration_since(since) >= UNNAMED_KEPT {
            tracing::debug!(name, "removes a file that nobody needs");
            unnamed.remove(&name);
            core.files.remove(name).await?;
        }
    }
    Ok(())
}

async fn bound_log(core: Arc<Core>) {
    loop {
        sleep(LOG_PAUSE).await;
        let new_entries = {
            let metrics = core.raft.metrics();
            let metrics = metrics.borrow();
            let index = |id: Option<crate::types::LogId>| id.map_or(0, |id| id.index);
            index(metrics.last_applied).saturating_sub(index(metrics.snapshot))
        };
        if core.log.bytes() > core.pace.snapshot_bytes
            && new_entries >= ENTRIES_MIN
            && let Err(error) = core.raft.trigger().snapshot().await
        {
            tracing::warn!(%error, "a snapshot could not be asked for");
        }
    }
}
