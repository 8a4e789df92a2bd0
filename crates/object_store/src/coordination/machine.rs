//! The identity of a process on a machine, by which a dead one is recognized.

use std::collections::BTreeSet;
use std::fs;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// A process, told from every other that there was or is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    /// The machine since it was started.
    boot: String,
    /// The namespace in which the number counts.
    namespace: String,
    pub(crate) process: u32,
    /// When it was started, for numbers are given again.
    started: String,
}

/// Holders of leases that this process has.
static OURS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

impl ProcessId {
    /// This process; nothing where the system does not tell.
    pub(crate) fn own() -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        let process = std::process::id();
        Some(Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.to_str()?.to_owned(),
            process,
            started: started(process)?,
        })
    }

    /// Whether it is of this machine, and numbers of processes mean the same here and there.
    pub(crate) fn is_near(&self, own: Option<&Self>) -> bool {
        own.is_some_and(|own| (&own.boot, &own.namespace) == (&self.boot, &self.namespace))
    }

    /// Whether it is known to have gone, or is this one and has no such holder.
    pub(crate) fn has_gone(&self, own: Option<&Self>, holder: &str) -> bool {
        if own == Some(self) {
            return !OURS.lock().contains(holder);
        }
        self.is_near(own) && started(self.process).as_ref() != Some(&self.started)
    }
}

/// Notes a holder of a lease in this process, until [`forget`].
pub(crate) fn note(holder: &str) {
    OURS.lock().insert(holder.to_owned());
}

/// The holder has gone.
pub(crate) fn forget(holder: &str) {
    OURS.lock().remove(holder);
}

/// When a process was started, in ticks since the machine was: the 22nd word of its line. The
/// second, its name, may hold anything.
fn started(process: u32) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind_name) = line.rsplit_once(')')?;
    behind_name.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_gone_is_told_from_one_that_is_there() {
        let own = ProcessId::own().unwrap();
        note("held");
        assert!(!own.has_gone(Some(&own), "held"));
        forget("held");
        assert!(own.has_gone(Some(&own), "held"));
        let parent = ProcessId {
            process: 1,
            started: started(1).unwrap(),
            ..own.clone()
        };
        assert!(!parent.has_gone(Some(&own), "other"));
        let earlier = ProcessId {
            started: "0x".to_owned(),
            ..parent.clone()
        };
        assert!(earlier.has_gone(Some(&own), "other"));
        let elsewhere = ProcessId {
            boot: "another machine".to_owned(),
            ..earlier
        };
        assert!(!elsewhere.has_gone(Some(&own), "other"));
    }
}
