//! One simulated schedule: clients, faults, then the checks for linearizability and equal nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::messages::Member;
use crate::node::members;
use crate::simulation::cluster::Cluster;
use crate::simulation::history::{Ask, Operation, Told, check};
use crate::simulation::network::Weather;
use crate::simulation::random::Random;
use crate::store::QuorumStore;
use crate::transport::paths;
use crate::types::{INLINE_BYTES_MAX, NodeId};

const KEYS: u64 = 3;
const CLIENTS: u64 = 4;

/// What a schedule has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub operations: usize,
    pub unknown: usize,
    pub crashes: usize,
    pub partitions: usize,
    pub member_changes: usize,
}

/// What clients share.
#[derive(Default)]
struct Shared {
    clock: u64,
    values: u64,
    histories: BTreeMap<u64, Vec<Operation>>,
    /// The tag that a value was seen with.
    tags: BTreeMap<u64, String>,
    wrong: Option<String>,
    /// Where a client finds its node; `None` while it is down.
    stores: BTreeMap<NodeId, Option<QuorumStore>>,
    is_over: bool,
}

type Board = Arc<Mutex<Shared>>;

impl Shared {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn saw(&mut self, value: u64, tag: Option<String>) {
        let tag = tag.unwrap_or_default();
        let known = self.tags.entry(value).or_insert_with(|| tag.clone());
        if *known != tag {
            self.wrong = Some(format!(
                "value {value} was seen with the tags {known} and {tag}"
            ));
        }
    }
}

/// Runs a schedule.
pub(crate) async fn run(seed: u64) -> Result<Seen, String> {
    let mut random = Random::new(seed);
    let board = Board::default();
    let number = if random.chance(75) { 3 } else { 5 };
    let spares = random.below(2);
    let mut cluster = Cluster::start(number, spares, Random::new(random.next())).await;
    publish(&cluster, &board);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(client(board.clone(), Random::new(random.next()))))
        .collect();
    let mut seen = Seen::default();
    mishaps(&mut cluster, &board, &mut random, &mut seen).await?;
    board.lock().is_over = true;
    finish(clients).await?;
    last_reads(&cluster, &board).await?;
    alike(&cluster).await?;
    cluster.network.clear();
    let board = board.lock();
    if let Some(wrong) = &board.wrong {
        return Err(wrong.clone());
    }
    for (key, history) in &board.histories {
        seen.operations += history.len();
        seen.unknown += history
            .iter()
            .filter(|operation| operation.told == Told::Unknown)
            .count();
        check(history).map_err(|most| {
            let mut lines: Vec<String> = history
                .iter()
                .map(|operation| format!("{operation:?}"))
                .collect();
            lines.sort_unstable();
            format!(
                "the history of key {key} is not linearizable ({most} of {} in order):\n{}",
                history.len(),
                lines.join("\n")
            )
        })?;
    }
    Ok(seen)
}

fn publish(cluster: &Cluster, board: &Board) {
    board.lock().stores = cluster
        .ids()
        .into_iter()
        .map(|id| (id, cluster.running(id).map(|running| running.store())))
        .collect();
}

/// A while in which nodes crash and messages are lost.
async fn mishaps(
    cluster: &mut Cluster,
    board: &Board,
    random: &mut Random,
    seen: &mut Seen,
) -> Result<(), String> {
    let ids = cluster.ids();
    let any = |random: &mut Random| ids[random.below(ids.len() as u64) as usize];
    let mut change: Option<JoinHandle<()>> = None;
    for _ in 0..4 + random.below(12) {
        sleep(Duration::from_millis(50 + random.below(1_200))).await;
        match random.below(12) {
            0..=2 => {
                seen.crashes += 1;
                cluster.crash(any(random))?;
            }
            3 => {
                // All at once, as when the power fails.
                seen.crashes += ids.len();
                ids.iter().try_for_each(|&id| cluster.crash(id))?;
            }
            4 => {
                let leader = ids
                    .iter()
                    .find_map(|&id| cluster.running(id)?.core.leader())
                    .unwrap_or(1);
                seen.crashes += 1;
                cluster.crash(leader)?;
            }
            5 | 6 => {
                seen.partitions += 1;
                let side: BTreeSet<NodeId> =
                    ids.iter().copied().filter(|_| random.chance(50)).collect();
                let one_way = random.chance(20);
                let mut cut = cluster.network.cut.lock();
                for &from in &ids {
                    for &to in &ids {
                        if side.contains(&from) && !side.contains(&to)
                            || (!one_way && !side.contains(&from) && side.contains(&to))
                        {
                            cut.insert((from, to));
                        }
                    }
                }
            }
            7 => cluster.network.cut.lock().clear(),
            8 => {
                *cluster.network.weather.lock() = Weather {
                    lost: random.below(25),
                    doubled: random.below(20),
                    delay_ms: random.below(60),
                }
            }
            9 => cluster.move_clock(any(random)),
            _ if change.as_ref().is_none_or(JoinHandle::is_finished) => {
                change = change_members(cluster, random);
                seen.member_changes += usize::from(change.is_some());
            }
            _ => {}
        }
        publish(cluster, board);
        for &id in &ids {
            if cluster.running(id).is_none() && random.chance(60) {
                cluster.launch(id).await?;
            }
        }
        publish(cluster, board);
    }
    calm(cluster, board).await?;
    if let Some(change) = change {
        change
            .await
            .map_err(|error| format!("a change of members: {error}"))?;
    }
    Ok(())
}

/// Has a node added or removed, by any node. It may fail, at any point.
fn change_members(cluster: &Cluster, random: &mut Random) -> Option<JoinHandle<()>> {
    let ids = cluster.ids();
    let running = cluster.running(ids[random.below(ids.len() as u64) as usize])?;
    let id = ids[random.below(ids.len() as u64) as usize];
    let voters = cluster.voters();
    let path = match voters.contains(&id) {
        true if voters.len() > 2 => paths::REMOVE,
        true => return None,
        false => paths::ADD,
    };
    let member = Member {
        id,
        address: id.to_string(),
    };
    Some(tokio::spawn(async move {
        let _ = members::change(&running.core, path, member).await;
    }))
}

/// All nodes run and reach each other again.
async fn calm(cluster: &mut Cluster, board: &Board) -> Result<(), String> {
    cluster.network.cut.lock().clear();
    *cluster.network.weather.lock() = Weather::default();
    for id in cluster.ids() {
        if cluster.running(id).is_none() {
            cluster.launch(id).await?;
        }
    }
    publish(cluster, board);
    sleep(Duration::from_secs(3)).await;
    for id in cluster.ids() {
        if let Some(reason) = cluster
            .running(id)
            .and_then(|running| running.core.stopped())
        {
            return Err(format!("node {id} stopped by itself: {reason}"));
        }
    }
    Ok(())
}

async fn finish(clients: Vec<JoinHandle<()>>) -> Result<(), String> {
    for client in clients {
        client.await.map_err(|error| format!("a client: {error}"))?;
    }
    Ok(())
}

/// Every key is read from every node that votes: what was acknowledged must be there.
async fn last_reads(cluster: &Cluster, board: &Board) -> Result<(), String> {
    for id in cluster.voters() {
        let Some(running) = cluster.running(id) else {
            continue;
        };
        for key in 0..KEYS {
            if !operate(board, &running.store(), key, Ask::Get, None).await {
                return Err(format!(
                    "node {id} does not answer a read of key {key} although all is well"
                ));
            }
        }
    }
    Ok(())
}

/// All nodes that vote come to the same objects, and to all files.
async fn alike(cluster: &Cluster) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let nodes: Vec<_> = cluster
            .voters()
            .into_iter()
            .filter_map(|id| cluster.running(id))
            .collect();
        let mut problem = None;
        let first = nodes[0].core.shared.state.read().clone();
        for node in &nodes {
            if *node.core.shared.state.read() != first {
                problem = Some(format!(
                    "nodes {} and {} have different states",
                    nodes[0].core.id, node.core.id
                ));
            }
            match crate::node::fetch::missing(&node.core).await {
                Ok(missing) if missing.is_empty() => {}
                missing => {
                    problem = Some(format!("node {} lacks files: {missing:?}", node.core.id))
                }
            }
        }
        match problem {
            None => return Ok(()),
            Some(problem) if Instant::now() > deadline => return Err(problem),
            Some(_) => sleep(Duration::from_millis(200)).await,
        }
    }
}

/// A client: one operation after the other, each at some node.
async fn client(board: Board, mut random: Random) {
    // What it has seen last, by key: value and tag.
    let mut known: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    loop {
        sleep(Duration::from_millis(random.below(300))).await;
        let key = random.below(KEYS);
        let store = {
            let board = board.lock();
            if board.is_over {
                return;
            }
            let stores: Vec<_> = board.stores.values().flatten().collect();
            if stores.is_empty() {
                continue;
            }
            stores[random.below(stores.len() as u64) as usize].clone()
        };
        let value = {
            let mut board = board.lock();
            board.values += 1;
            board.values
        };
        let ask = match random.below(10) {
            0..=3 => Ask::Get,
            4 | 5 => Ask::Overwrite(value),
            6 => Ask::Create(value),
            7 => Ask::Delete,
            _ => known
                .get(&key)
                .map_or(Ask::Overwrite(value), |(old, _)| Ask::Update(*old, value)),
        };
        let tag = known.get(&key).map(|(_, tag)| tag.clone());
        operate(&board, &store, key, ask, tag).await;
        let board = board.lock();
        let last = board.histories.get(&key).and_then(|history| {
            history
                .iter()
                .rev()
                .find_map(|operation| match (operation.ask, operation.told) {
                    (Ask::Get, Told::Value(value)) if value > 0 => Some(value),
                    (
                        Ask::Overwrite(value) | Ask::Create(value) | Ask::Update(_, value),
                        Told::Done,
                    ) => Some(value),
                    _ => None,
                })
        });
        if let Some(value) = last
            && let Some(tag) = board.tags.get(&value)
        {
            known.insert(key, (value, tag.clone()));
        }
    }
}

/// Does an operation and writes it down. Says whether it had an outcome.
async fn operate(
    board: &Board,
    store: &QuorumStore,
    key: u64,
    ask: Ask,
    tag: Option<String>,
) -> bool {
    let path = Path::from(format!("key/{key}"));
    let called = board.lock().tick();
    let mut seen = None;
    let told = match ask {
        Ask::Get => match read(store, &path).await {
            Ok((value, tag)) => {
                seen = Some((value, tag));
                Some(Told::Value(value))
            }
            Err(Error::NotFound { .. }) => Some(Told::Value(0)),
            Err(_) => None,
        },
        Ask::Delete => outcome(store.delete(&path).await),
        Ask::Overwrite(value) | Ask::Create(value) | Ask::Update(_, value) => {
            let mode = match ask {
                Ask::Create(_) => PutMode::Create,
                Ask::Update(..) => PutMode::Update(UpdateVersion {
                    e_tag: tag,
                    version: None,
                }),
                _ => PutMode::Overwrite,
            };
            let put = store.put_opts(&path, body(value), mode.into()).await;
            if let Ok(put) = &put {
                seen = Some((value, put.e_tag.clone()));
            }
            outcome(put)
        }
    };
    let mut board = board.lock();
    if let Some((value, tag)) = seen {
        board.saw(value, tag);
    }
    let Some(told) = told else { return false };
    let returned = if told == Told::Unknown {
        u64::MAX
    } else {
        board.tick()
    };
    board.histories.entry(key).or_default().push(Operation {
        ask,
        told,
        called,
        returned,
    });
    told != Told::Unknown
}

/// What a client may conclude; nothing was done if `None`.
fn outcome<T>(result: Result<T, Error>) -> Option<Told> {
    match result {
        Ok(_) => Some(Told::Done),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Some(Told::Refused),
        Err(Error::Generic { source, .. }) => match source.downcast_ref::<crate::Error>() {
            Some(crate::Error::NoLeader { .. } | crate::Error::TooFewCopies { .. }) => None,
            _ => Some(Told::Unknown),
        },
        Err(_) => Some(Told::Unknown),
    }
}

/// A value's bytes; some are too large for the log.
fn body(value: u64) -> PutPayload {
    let length = if value.is_multiple_of(11) {
        INLINE_BYTES_MAX + 100
    } else {
        8
    };
    let mut bytes = vec![value as u8; length];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    bytes.into()
}

async fn read(store: &QuorumStore, path: &Path) -> Result<(u64, Option<String>), Error> {
    let found = store.get(path).await?;
    let tag = found.meta.e_tag.clone();
    let bytes = found.bytes().await?;
    let value = bytes
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    assert_eq!(
        bytes,
        bytes::Bytes::from(body(value)),
        "the bytes of value {value}"
    );
    Ok((value, tag))
}
