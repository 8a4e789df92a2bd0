//! A node's side of calls: reachable nodes, and the handler of incoming calls.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;

use crate::calls::{
    self, CALL_REQUEST_BYTES_MAX, CallAnswer, CallError, CallHandler, Handlers, is_kind,
};
use crate::error::Result;
use crate::http::calls::client::{Call, Caller};
use crate::node::core::Core;
use crate::types::NodeId;

/// Calls from and to a node.
pub(crate) struct Calls {
    pub core: Arc<Core>,
    /// Where this node listens; empty if it does not.
    pub address: String,
    pub handlers: Arc<Handlers>,
    pub caller: Caller,
}

impl Calls {
    /// The members that this node knows, and itself.
    pub(crate) fn peers(&self) -> Vec<(NodeId, String)> {
        let mut addresses = self.core.addresses();
        addresses
            .entry(self.core.id)
            .or_insert_with(|| self.address.clone());
        addresses.into_iter().collect()
    }

    /// From now on this handler answers calls of a kind.
    pub(crate) fn answer(&self, kind: &'static str, handler: Arc<dyn CallHandler>) -> Result<()> {
        self.handlers.add(kind, handler)
    }

    /// Calls a node, or the handler here.
    pub(crate) async fn call(
        &self,
        to: NodeId,
        kind: &str,
        request: Bytes,
        silence: Duration,
    ) -> Result<CallAnswer, CallError> {
        let refused = |detail: String| CallError::Refused { node: to, detail };
        if !is_kind(kind) {
            return Err(refused(format!("`{kind}` is no name for calls")));
        }
        if request.len() > CALL_REQUEST_BYTES_MAX {
            return Err(refused(format!(
                "the request has {} bytes; {CALL_REQUEST_BYTES_MAX} at most",
                request.len()
            )));
        }
        if to == self.core.id {
            let handler = self.handlers.find(kind).map_err(refused)?;
            let messages = calls::messages(&*handler, kind, request);
            let failed = move |message| CallError::Handler { node: to, message };
            return Ok(messages.map(move |message| message.map_err(failed)).boxed());
        }
        let Some(address) = self.core.addresses().remove(&to) else {
            return Err(CallError::Unreachable {
                node: to,
                detail: format!("it is no member that node {} knows", self.core.id),
            });
        };
        let call = Call {
            node: to,
            address,
            kind: kind.to_owned(),
            request,
            silence,
        };
        self.caller.call(call).await
    }
}
