//! A simulated network that loses, delays, duplicates and truncates messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use crate::error::{Error, Result};
use crate::node::service::Service;
use crate::simulation::random::Random;
use crate::transport::Transport;
use crate::types::NodeId;

/// How bad the network is now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    /// Of a hundred messages, and as many answers.
    pub lost: u64,
    /// Of a hundred messages.
    pub doubled: u64,
    /// A message takes up to this long.
    pub delay_ms: u64,
}

/// What all nodes are connected to.
pub(crate) struct Network {
    random: Mutex<Random>,
    places: Mutex<BTreeMap<NodeId, (u64, Option<Service>)>>,
    pub weather: Mutex<Weather>,
    /// From whom to whom nothing gets.
    pub cut: Mutex<BTreeSet<(NodeId, NodeId)>>,
}

/// One start of a node, as it sends.
pub(crate) struct Sender {
    pub network: Arc<Network>,
    pub from: NodeId,
    pub start: u64,
}

impl Network {
    pub(crate) fn new(random: Random) -> Arc<Self> {
        Arc::new(Self {
            random: Mutex::new(random),
            places: Mutex::default(),
            weather: Mutex::default(),
            cut: Mutex::default(),
        })
    }

    /// A node starts, once more. It is reached from [`Network::connect`] on.
    pub(crate) fn start(&self, node: NodeId) -> u64 {
        let mut places = self.places.lock();
        let place = places.entry(node).or_insert((0, None));
        *place = (place.0 + 1, None);
        place.0
    }

    pub(crate) fn connect(&self, node: NodeId, service: Service) {
        if let Some(place) = self.places.lock().get_mut(&node) {
            place.1 = Some(service);
        }
    }

    /// A node is gone: nothing reaches it, and nothing of it reaches others.
    pub(crate) fn stop(&self, node: NodeId) {
        self.start(node);
    }

    /// Forgets all nodes, which hold this network in turn.
    pub(crate) fn clear(&self) {
        self.places.lock().clear();
    }

    fn starts(&self, node: NodeId) -> u64 {
        self.places.lock().get(&node).map_or(0, |place| place.0)
    }

    fn service(&self, node: NodeId) -> Option<Service> {
        self.places
            .lock()
            .get(&node)
            .and_then(|place| place.1.clone())
    }

    fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cut.lock().contains(&(from, to))
    }

    /// Whether a message is lost, and how long it takes.
    fn fate(&self) -> (bool, Duration) {
        let weather = *self.weather.lock();
        let mut random = self.random.lock();
        // A few take long, so that many overtake them.
        let span = if random.chance(5) {
            weather.delay_ms * 10
        } else {
            weather.delay_ms
        };
        (
            random.chance(weather.lost),
            Duration::from_micros(random.below(span * 1_000 + 200) + 50),
        )
    }
}

impl Sender {
    async fn send(&self, node: NodeId, path: &'static str, body: Bytes) -> Option<Result<Bytes>> {
        let network = &self.network;
        let (is_lost, delay) = network.fate();
        sleep(delay).await;
        if is_lost || network.is_cut(self.from, node) || network.starts(self.from) != self.start {
            return None;
        }
        let start = network.starts(node);
        let service = network.service(node)?;
        let is_doubled = network.random.lock().chance(network.weather.lock().doubled);
        if is_doubled {
            let (service, body, network) = (service.clone(), body.clone(), network.clone());
            tokio::spawn(async move {
                sleep(network.fate().1 * 20).await;
                if network.starts(node) == start {
                    let _ = service.answer(path, &body).await;
                }
            });
        }
        // The other side goes on when nobody waits for its answer any more.
        let answer = tokio::spawn(async move { service.answer(path, &body).await })
            .await
            .ok()?;
        let (is_lost, delay) = network.fate();
        sleep(delay).await;
        let is_gone = network.starts(node) != start || network.starts(self.from) != self.start;
        (!is_lost && !is_gone && !network.is_cut(node, self.from)).then_some(answer)
    }
}

#[async_trait]
impl Transport for Sender {
    async fn call(
        &self,
        node: NodeId,
        address: &str,
        path: &'static str,
        body: Bytes,
        limit: Duration,
    ) -> Result<Bytes> {
        let answer = timeout(limit, async {
            match self.send(node, path, body).await {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        });
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Error::Refused {
                node,
                detail: error.to_string(),
            }),
            Err(_) => Err(Error::Unreachable {
                node,
                address: address.to_owned(),
                detail: "no answer in time".to_owned(),
            }),
        }
    }
}
