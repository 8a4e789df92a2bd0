//! The removal of old backups, and of objects that no other backup uses.
//!
//! The lists go first: whatever interrupts this, a list that is still there has all its objects.
//! What was left behind is found by the next, which looks at all objects. One that is in no list
//! may be of a backup that is being taken, so it stays for a day.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use crate::Error;
use crate::catalog::BackupList;
use crate::error::Result;
use crate::target::Target;

/// For so long an object without a list may be part of a backup that is being taken.
const UNFINISHED_MAX: Duration = Duration::from_secs(24 * 3600);

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneReport {
    /// Numbers of the backups that are no more, ascending.
    pub removed: Vec<u64>,
    /// Number of objects that were removed with them.
    pub objects: usize,
    /// Bytes of these objects.
    pub bytes: u64,
}

/// Removes all backups but the last `keep`. At least one is kept. Another backup into the target
/// must not run at the same time: it may count on objects that are removed here.
pub async fn prune(target: &Target, keep: usize) -> Result<PruneReport> {
    if keep == 0 {
        return Err(Error::Target {
            target: target.name().to_owned(),
            what: "at least one backup has to be kept".to_owned(),
        });
    }
    let lists = BackupList::read_all(target).await?;
    let (old, _) = lists.split_at(lists.len().saturating_sub(keep));
    for list in old {
        list.remove(target).await?;
    }
    // Read again: what was taken meanwhile keeps its objects.
    let kept = BackupList::read_all(target).await?;
    let objects_of = |lists: &[BackupList]| -> HashSet<String> {
        let files = lists.iter().flat_map(|list| &list.files);
        files.map(|file| file.object.clone()).collect()
    };
    let (needed, given_up) = (objects_of(&kept), objects_of(old));
    let young = SystemTime::now() - UNFINISHED_MAX;
    let mut report = PruneReport {
        removed: old.iter().map(|list| list.number).collect(),
        objects: 0,
        bytes: 0,
    };
    for object in target.list_objects().await? {
        let is_waste = given_up.contains(&object.name) || object.modified < young;
        if is_waste && !needed.contains(&object.name) {
            target.remove(&object.name).await?;
            report.objects += 1;
            report.bytes += object.bytes;
        }
    }
    Ok(report)
}
