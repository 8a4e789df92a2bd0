//! Entry points for fuzzers (`tools/fuzzing`): the calls of a client, without HTTP/2 and gRPC.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{Action, FlightDescriptor, Ticket};
use futures::StreamExt;
use orrery_service::ports::host::Host;
use tokio::sync::watch;
use tonic::codegen::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use tonic::{Request, Status};

use crate::access::by::By;
use crate::access::guard::Guard;
use crate::calls::shared::Shared;
use crate::life::Stage;
use crate::listener::service::Service;
use crate::metadata::capabilities::capabilities;
use crate::options::FlightOptions;

/// Most pieces of an answer that are read.
const PIECES_MAX: usize = 16;
/// Actions, of the protocol and of Flight.
const ACTIONS: [&str; 8] = [
    "CreatePreparedStatement",
    "ClosePreparedStatement",
    "BeginTransaction",
    "EndTransaction",
    "BeginSavepoint",
    "EndSavepoint",
    "CancelQuery",
    "CancelFlightInfo",
];

/// A service without a listener.
pub struct Called {
    service: Service,
    guard: Guard,
    _life: watch::Sender<Stage>,
}

impl std::fmt::Debug for Called {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Called").finish_non_exhaustive()
    }
}

impl Called {
    /// Makes a service over an engine.
    ///
    /// # Errors
    /// When the service cannot describe its capabilities.
    pub fn new(host: Host) -> Result<Self, Box<dyn std::error::Error>> {
        let options = FlightOptions {
            statement_time_default: Duration::from_secs(2),
            ..FlightOptions::new(([127, 0, 0, 1], 0).into())
        };
        let capabilities = capabilities(!host.writer.may_write(), &options)?;
        let (life, stage) = watch::channel(Stage::Serving);
        let shared = Arc::new(Shared::new(options, host, stage, capabilities));
        Ok(Self {
            service: Service(shared),
            guard: Guard::new(crate::Password::new("open"), None),
            _life: life,
        })
    }

    /// Makes the call with this number and this message, and ignores the result.
    pub async fn call(&self, number: u8, message: &[u8]) {
        // Errors are valid answers.
        let _ = self.answer(number, message.to_vec()).await;
        self.service.0.clear();
    }

    async fn answer(&self, number: u8, message: Vec<u8>) -> Result<(), Status> {
        let command = || let_in(FlightDescriptor::new_cmd(message.clone()));
        match number % 5 {
            0 => {
                let info = self.service.get_flight_info(command()).await?.into_inner();
                let ticket = info.endpoint.into_iter().find_map(|place| place.ticket);
                match ticket {
                    Some(ticket) => self.fetch(ticket).await,
                    None => Ok(()),
                }
            }
            1 => self.fetch(Ticket::new(message)).await,
            2 => self.service.get_schema(command()).await.map(drop),
            3 => {
                let (which, body) = message.split_first().unwrap_or((&0, &[]));
                let action = ACTIONS[usize::from(*which) % ACTIONS.len()];
                let action = Action::new(action, body.to_vec());
                let answers = self.service.do_action(let_in(action)).await?;
                answers
                    .into_inner()
                    .take(PIECES_MAX)
                    .for_each(|_| async {})
                    .await;
                Ok(())
            }
            _ => {
                let mut headers = HeaderMap::new();
                if let Ok(value) = HeaderValue::from_bytes(&message) {
                    headers.insert(AUTHORIZATION, value);
                }
                self.guard.require_password(&headers)
            }
        }
    }

    async fn fetch(&self, ticket: Ticket) -> Result<(), Status> {
        let pieces = self.service.do_get(let_in(ticket)).await?;
        pieces
            .into_inner()
            .take(PIECES_MAX)
            .for_each(|_| async {})
            .await;
        Ok(())
    }
}

/// A request as the guard has authenticated it.
fn let_in<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.extensions_mut().insert(By::Anybody);
    request
}
