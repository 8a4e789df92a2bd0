//! Membership changes, one at a time, through the leader.
//!
//! A node that is added learns first: it gets a snapshot or the log, then the files that it lacks,
//! and votes when it has all. A node that is removed goes when the others have all files: the
//! copies that a put has waited for may be on it. Who has not applied what others have does not
//! know yet which files it lacks, so the others must have applied all that is known here, too. Then
//! it votes no longer, but is asked for files until the others have those of puts that came
//! meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;

use openraft::{BasicNode, ChangeMembers};
use tokio::time::{Instant, timeout};

use crate::error::{Error, Result};
use crate::messages::{Led, Member, NodeStatus};
use crate::node::core::Core;
use crate::node::fetch;
use crate::transport::paths;
use crate::types::NodeId;

/// How often the time for a request may pass while members change: files are copied meanwhile.
const REQUESTS_MAX: u32 = 20;

/// How this node is.
pub(crate) async fn status(core: &Core) -> Result<NodeStatus> {
    let missing_files = fetch::missing(core).await?.len() as u64;
    let metrics = core.raft.metrics().borrow().clone();
    let (applied, objects) = {
        let state = core.shared.state.read();
        (state.applied.map(|id| id.index), state.objects.len() as u64)
    };
    Ok(NodeStatus {
        id: core.id,
        leader: metrics.current_leader,
        term: metrics.current_term,
        role: format!("{:?}", metrics.state).to_lowercase(),
        last_entry: metrics.last_log_index,
        applied,
        voters: metrics.membership_config.voter_ids().collect(),
        learners: metrics
            .membership_config
            .membership()
            .learner_ids()
            .collect(),
        missing_files,
        objects,
        stopped: core.stopped(),
    })
}

/// Adds or removes a node, through whoever leads.
pub(crate) async fn change(core: &Arc<Core>, path: &'static str, member: Member) -> Result<()> {
    let deadline = Instant::now() + core.pace.request;
    loop {
        let Some(leader) = core.await_leader(deadline).await else {
            return Err(Error::NoLeader {
                waited_ms: core.pace.request.as_millis() as u64,
                detail: "there is none".to_owned(),
            });
        };
        let answer = if leader == core.id {
            led(core, path, &member).await
        } else {
            core.ask(leader, path, &member, core.pace.request * REQUESTS_MAX)
                .await?
        };
        match answer {
            Led::Done(()) => return Ok(()),
            Led::Failed(detail) => return Err(Error::Members(detail)),
            Led::NotLeader(_) if Instant::now() < deadline => core.pause().await,
            Led::NotLeader(_) => {
                return Err(Error::Members(format!("node {leader} leads no longer")));
            }
        }
    }
}

/// The leader's side.
pub(crate) async fn led(core: &Arc<Core>, path: &str, member: &Member) -> Led<()> {
    if core.leader() != Some(core.id) {
        return Led::NotLeader(core.leader());
    }
    let changed = if path == paths::ADD {
        add(core, member).await
    } else {
        remove(core, member.id).await
    };
    match changed {
        Ok(()) => Led::Done(()),
        Err(error) => Led::Failed(error.to_string()),
    }
}

async fn add(core: &Arc<Core>, member: &Member) -> Result<()> {
    let failed = |error: String| {
        Error::Members(format!(
            "node {} at {} is not added: {error}",
            member.id, member.address
        ))
    };
    if core.voters().contains(&member.id) {
        return Ok(());
    }
    let known = core.addresses().remove(&member.id);
    if known
        .as_ref()
        .is_some_and(|address| *address != member.address)
    {
        return Err(failed(format!(
            "a learner of this number has another address, {}; remove it first",
            known.unwrap_or_default()
        )));
    }
    let node = BasicNode::new(member.address.clone());
    core.raft
        .add_learner(member.id, node, false)
        .await
        .map_err(|error| failed(error.to_string()))?;
    await_whole(core, &[member.id].into(), applied(core)).await?;
    let voter = ChangeMembers::AddVoterIds([member.id].into());
    change_voters(core, voter, false).await.map_err(failed)
}

/// The entry that this node has applied last.
fn applied(core: &Core) -> Option<u64> {
    core.shared.state.read().applied.map(|id| id.index)
}

async fn remove(core: &Arc<Core>, id: NodeId) -> Result<()> {
    let failed = |error: String| Error::Members(format!("node {id} is not removed: {error}"));
    let voters = core.voters();
    let is_voter = voters.contains(&id);
    let others: BTreeSet<NodeId> = voters.into_iter().filter(|&other| other != id).collect();
    if is_voter {
        if others.is_empty() {
            return Err(failed("it is the only one that votes".to_owned()));
        }
        await_whole(core, &others, applied(core)).await?;
        // As a learner, unless it leads: then it is the last that it can do here.
        let leads = id == core.id;
        change_voters(core, ChangeMembers::RemoveVoters([id].into()), !leads)
            .await
            .map_err(failed)?;
        if leads {
            return Ok(());
        }
    }
    if core.addresses().contains_key(&id) {
        // Also where an earlier try has ended here: files that came meanwhile may be with it alone.
        await_whole(core, &others, applied(core)).await?;
        return change_voters(core, ChangeMembers::RemoveNodes([id].into()), false)
            .await
            .map_err(failed);
    }
    Ok(())
}

/// Changes the members, as long as that takes, which is bounded. Who votes no longer goes on
/// learning, if it is to.
async fn change_voters(
    core: &Core,
    change: ChangeMembers<NodeId, BasicNode>,
    goes_on_learning: bool,
) -> Result<(), String> {
    match timeout(
        core.pace.request,
        core.raft.change_membership(change, goes_on_learning),
    )
    .await
    {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(
            "no majority has answered in time; look at the status before you try again".to_owned(),
        ),
    }
}

/// Waits until nodes have applied an entry, and have all files.
async fn await_whole(
    core: &Arc<Core>,
    nodes: &BTreeSet<NodeId>,
    applied: Option<u64>,
) -> Result<()> {
    let deadline = Instant::now() + core.pace.request * (REQUESTS_MAX - 2);
    for &node in nodes {
        loop {
            let found = if node == core.id {
                status(core).await
            } else {
                core.ask(node, paths::STATUS, &(), core.pace.attempt).await
            };
            let detail = match found {
                Ok(found) if found.missing_files == 0 && found.applied >= applied => break,
                Ok(found) => format!(
                    "it has applied entry {:?} of {applied:?} and lacks {} files",
                    found.applied, found.missing_files
                ),
                Err(error @ Error::Refused { .. }) => return Err(error),
                Err(error) => error.to_string(),
            };
            if Instant::now() >= deadline || core.stopped().is_some() {
                return Err(Error::Members(format!(
                    "node {node} must have all first: {detail}"
                )));
            }
            core.pause().await;
        }
    }
    Ok(())
}
