//! The links of one query's exchanges to the workers that hold their input.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use futures::{TryStreamExt as _, stream};

use crate::counts::Counts;
use crate::error::{Error, of_network};
use crate::language::{Incoming, Translation};
use crate::messages::{Receiver, Request};
use crate::network::Network;

/// A partition of a stage at one worker.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    member: usize,
    stage: usize,
    partition: usize,
}

/// What a stage gives, and who has it.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The member that has each partition.
    pub(crate) owners: Vec<usize>,
    /// Whether what each of them has is divided anew.
    pub(crate) is_repartitioned: bool,
}

/// This process as a worker, without the network.
pub(crate) trait RowsHere: Send + Sync {
    /// The rows of a partition of a stage, as they are to be read by its reader.
    fn rows_here<'a>(
        &'a self,
        query: &'a str,
        partition: (usize, usize),
        incoming: Box<dyn Incoming>,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Result<RecordBatch>>>>;
}

/// What exchanges of a query have in common.
pub(crate) struct Links {
    network: Arc<dyn Network>,
    here: Weak<dyn RowsHere>,
    query: String,
    members: Vec<String>,
    shapes: Vec<Shape>,
    translation: Arc<dyn Translation>,
    counts: Arc<Counts>,
    bytes: AtomicU64,
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links")
            .field("query", &self.query)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl Links {
    pub(crate) fn new(
        (network, counts): (&Arc<dyn Network>, &Arc<Counts>),
        here: Weak<dyn RowsHere>,
        query: String,
        members: Vec<String>,
        shapes: Vec<Shape>,
        translation: Arc<dyn Translation>,
    ) -> Arc<Self> {
        Arc::new(Self {
            network: Arc::clone(network),
            counts: Arc::clone(counts),
            here,
            query,
            members,
            shapes,
            translation,
            bytes: AtomicU64::new(0),
        })
    }

    /// Bytes of rows that came from other processes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Where the rows of an exchange's partition are.
    pub(crate) fn sources(&self, stage: usize, partition: usize) -> Vec<Source> {
        let Some(shape) = self.shapes.get(stage) else {
            return Vec::new();
        };
        let source = |member| Source {
            member,
            stage,
            partition,
        };
        if !shape.is_repartitioned {
            let owner = shape.owners.get(partition).copied();
            return owner.map(source).into_iter().collect();
        }
        let mut owners = shape.owners.clone();
        owners.sort_unstable();
        owners.dedup();
        owners.into_iter().map(source).collect()
    }

    /// The rows of a partition at a worker.
    pub(crate) fn read(
        self: &Arc<Self>,
        source: Source,
        schema: &SchemaRef,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let (links, schema) = (Arc::clone(self), Arc::clone(schema));
        let began = async move { links.begun(source, schema).await };
        stream::once(began).try_flatten().boxed()
    }

    async fn begun(
        self: Arc<Self>,
        source: Source,
        schema: SchemaRef,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let member = self.members.get(source.member).cloned().unwrap_or_default();
        let is_here = self.network.here() == member;
        if is_here && let Some(here) = self.here.upgrade() {
            let place = (source.stage, source.partition);
            let rows = here.rows_here(&self.query, place, self.translation.incoming());
            return rows.await;
        }
        let request = Request::Read {
            query: self.query.clone(),
            stage: source.stage,
            partition: source.partition,
        };
        let answer = self.network.call(&member, request.to_bytes(&[])?).await;
        let answer = answer.map_err(|error| of_network(&member, error))?;
        let receiver = Receiver::new(&schema, self.translation.incoming());
        let batches = stream::try_unfold(
            (answer, receiver, self),
            move |(mut answer, mut receiver, links)| {
                let member = member.clone();
                async move {
                    if receiver.has_ended() {
                        return Ok(None);
                    }
                    let Some(message) = answer.next().await else {
                        let text = format!("the worker {member} is lost: its answer has no end");
                        return Err(DataFusionError::from(Error::Lost(text)));
                    };
                    let message = message.map_err(|error| of_network(&member, error))?;
                    if !is_here {
                        let bytes = message.len() as u64;
                        links.bytes.fetch_add(bytes, Ordering::Relaxed);
                        let all = &links.counts.bytes;
                        all.fetch_add(bytes, Ordering::Relaxed);
                    }
                    let batches = receiver.take(message)?;
                    let batches = stream::iter(batches.into_iter().map(Ok));
                    Ok(Some((batches, (answer, receiver, links))))
                }
            },
        );
        Ok(batches.try_flatten().boxed())
    }
}
