//! The service of the protocol: passes each call to the module that executes it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginSavepointResult, ActionBeginTransactionRequest,
    ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, ActionEndSavepointRequest, ActionEndTransactionRequest,
    Any, Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas,
    CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, SqlInfo,
    TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightData,
    FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, IpcMessage, SchemaAsIpc,
    Ticket,
};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::access::guard::Handshakes;
use crate::access::peer::Peer;
use crate::calls::answer::Batches;
use crate::calls::call::Call;
use crate::calls::shared::Shared;
use crate::execution::ingest::batches;
use crate::execution::savepoints::End;
use crate::execution::statements::Asked;
use crate::handles::{ConnectionId, Owner};
use crate::refusal::{malformed, refusal, refused};
use crate::{metadata::definitions, metadata::keys};

/// The action of Flight that has replaced `CancelQuery`.
const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";
/// `EndTransaction` and `EndSavepoint` of the protocol.
const COMMIT_OR_RELEASE: i32 = 1;
const ROLL_BACK: i32 = 2;

/// Implements the calls of Flight SQL over the shared state.
pub(crate) struct Service(pub(crate) Arc<Shared>);

type Flown = BoxStream<'static, Result<FlightData, Status>>;

/// Encodes rows for a client.
fn flown(schema: SchemaRef, rows: Batches) -> Response<Flown> {
    let encoded = FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .build(rows.map_err(FlightError::from));
    Response::new(encoded.map_err(Status::from).boxed())
}

fn flown_once(batch: RecordBatch) -> Response<Flown> {
    let rows = futures::stream::iter([Ok(batch.clone())]).boxed();
    flown(batch.schema(), rows)
}

/// A FlightInfo for rows with these columns; without a ticket it has no endpoint.
fn info(
    schema: &Schema,
    ticket: Option<Bytes>,
    descriptor: FlightDescriptor,
) -> Result<Response<FlightInfo>, Status> {
    let mut info = FlightInfo::new()
        .try_with_schema(schema)
        .map_err(|error| refusal(Code::Internal, "XX000", error.to_string()))?
        .with_descriptor(descriptor);
    if let Some(ticket) = ticket {
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket));
        info = info.with_endpoint(endpoint);
    }
    Ok(Response::new(info))
}

fn asked(asked: Asked, descriptor: FlightDescriptor) -> Result<Response<FlightInfo>, Status> {
    match asked {
        Asked::Done => info(&Schema::empty(), None, descriptor),
        Asked::Rows(handle, answer) => {
            let ticket = TicketStatementQuery {
                statement_handle: handle,
            };
            let ticket = ticket.as_any().encode_to_vec().into();
            info(answer.schema(), Some(ticket), descriptor)
        }
    }
}

/// A FlightInfo whose ticket repeats the command: the answer is computed anew for each fetch.
fn described(
    schema: &Schema,
    request: Request<FlightDescriptor>,
) -> Result<Response<FlightInfo>, Status> {
    let descriptor = request.into_inner();
    info(schema, Some(descriptor.cmd.clone()), descriptor)
}

fn ipc(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &options));
    let message = message.map_err(|error| refusal(Code::Internal, "XX000", error.to_string()))?;
    Ok(message.0)
}

/// The connection that a call came through.
fn connection_of<T>(request: &Request<T>) -> Option<ConnectionId> {
    request.extensions().get::<Peer>().map(|peer| peer.id)
}

impl Service {
    /// Reads the caller of a request that the guard has authenticated.
    fn call<T>(&self, request: &Request<T>) -> Result<Call, Status> {
        Call::new(&self.0, request)
    }
}

impl Call {
    /// Cancels the answers of these tickets; returns whether there was one.
    fn cancel(&self, info: &FlightInfo) -> bool {
        let tickets = info.endpoint.iter().filter_map(|it| it.ticket.as_ref());
        let handles = tickets.filter_map(|ticket| {
            let message = Any::decode(&*ticket.ticket).ok()?;
            match Command::try_from(message).ok()? {
                Command::TicketStatementQuery(ticket) => Some(ticket.statement_handle),
                _ => None,
            }
        });
        let mut is_there = false;
        for handle in handles {
            if let Some(answer) = self.answers.get(&handle, self.by().owner()) {
                answer.cancel();
                is_there = true;
            }
        }
        is_there
    }
}

fn transaction(handle: &Option<Bytes>) -> Option<&[u8]> {
    handle.as_deref()
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Self;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Handshakes>, Status> {
        let call = self.call(&request)?;
        call.guard.shake_hands(call.by())
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let connection = connection_of(&request);
        let transaction = transaction(&query.transaction_id);
        let call = self.call(&request)?;
        let come_to = call.ask(&query.query, transaction, connection).await?;
        asked(come_to, request.into_inner())
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let connection = connection_of(&request);
        let handle = &query.prepared_statement_handle;
        let call = self.call(&request)?;
        let come_to = call.ask_kept(handle, connection).await?;
        asked(come_to, request.into_inner())
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        described(&query.into_builder().schema(), request)
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        described(&query.into_builder().schema(), request)
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        described(&query.into_builder().schema(), request)
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        described(&query.into_builder().schema(), request)
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let schema = query.into_builder(&self.0.capabilities).schema();
        described(&schema, request)
    }

    async fn get_flight_info_primary_keys(
        &self,
        _: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        described(&keys::primary_key_columns(), request)
    }

    async fn get_flight_info_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        described(&keys::foreign_key_columns(), request)
    }

    async fn get_flight_info_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        described(&keys::foreign_key_columns(), request)
    }

    async fn get_flight_info_cross_reference(
        &self,
        _: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        described(&keys::foreign_key_columns(), request)
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let call = self.call(&request)?;
        let owner = call.by().owner();
        let answer = call.answers.get(&ticket.statement_handle, owner);
        let taken = match answer {
            None => None,
            Some(answer) => {
                let session = call.session();
                let goes_on = session.require_scope(answer.scope());
                goes_on.map_err(|error| refused(&error))?;
                answer
                    .take()
                    .map(|rows| (Arc::clone(answer.schema()), rows))
            }
        };
        let Some((schema, rows)) = taken else {
            return Err(refusal(
                Code::NotFound,
                "26000",
                "there is no such answer: it was fetched already, or not for too long",
            ));
        };
        // It can be canceled as long as rows come.
        let forgotten = Forgotten(Arc::clone(&self.0), ticket.statement_handle, owner);
        let rows = rows.map(move |batch| {
            let _ = &forgotten;
            // A caller who is not allowed in any more gets no more rows.
            call.by().require()?;
            batch
        });
        Ok(flown(schema, rows.boxed()))
    }

    async fn do_get_catalogs(
        &self,
        query: CommandGetCatalogs,
        _: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        Ok(flown_once(definitions::catalogs(query)?))
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let call = self.call(&request)?;
        Ok(flown_once(call.schemas(query)?))
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        request: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let call = self.call(&request)?;
        Ok(flown_once(call.described_tables(query).await?))
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        _: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        Ok(flown_once(definitions::table_types(query)?))
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        _: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let told = query.into_builder(&self.0.capabilities).build();
        Ok(flown_once(told.map_err(malformed)?))
    }

    async fn do_get_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let call = self.call(&request)?;
        Ok(flown_once(call.primary_keys(&query)?))
    }

    async fn do_get_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let call = self.call(&request)?;
        Ok(flown_once(call.exported_keys(&query)?))
    }

    async fn do_get_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let call = self.call(&request)?;
        Ok(flown_once(call.imported_keys(&query)?))
    }

    async fn do_get_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let call = self.call(&request)?;
        Ok(flown_once(call.cross_reference(&query)?))
    }

    async fn do_put_statement_update(
        &self,
        update: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let call = self.call(&request)?;
        let transaction = transaction(&update.transaction_id);
        call.change(&update.query, transaction).await
    }

    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let call = self.call(&request)?;
        let data = batches(request.into_inner(), self.0.options.send_time_max);
        call.ingest(command, data).await
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let call = self.call(&request)?;
        let data = batches(request.into_inner(), self.0.options.send_time_max);
        let handle = query.prepared_statement_handle;
        call.bind(&handle, data.stream()).await?;
        Ok(DoPutPreparedStatementResult {
            prepared_statement_handle: Some(handle),
        })
    }

    async fn do_put_prepared_statement_update(
        &self,
        update: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let call = self.call(&request)?;
        let data = batches(request.into_inner(), self.0.options.send_time_max);
        let handle = update.prepared_statement_handle;
        call.change_kept(&handle, data.stream()).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let call = self.call(&request)?;
        let transaction = transaction(&query.transaction_id);
        let described = call.prepare(&query.query, transaction).await?;
        let columns = described.columns.map(|columns| ipc(&columns)).transpose()?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: described.handle,
            dataset_schema: columns.unwrap_or_default(),
            parameter_schema: ipc(&described.parameters)?,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let call = self.call(&request)?;
        let handle = &query.prepared_statement_handle;
        // An unknown statement counts as closed.
        call.statements.remove(handle, call.by().owner());
        Ok(())
    }

    async fn do_action_begin_transaction(
        &self,
        _: ActionBeginTransactionRequest,
        request: Request<Action>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        let call = self.call(&request)?;
        let connection = connection_of(&request);
        Ok(ActionBeginTransactionResult {
            transaction_id: call.begin_transaction(connection)?,
        })
    }

    async fn do_action_end_transaction(
        &self,
        query: ActionEndTransactionRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let call = self.call(&request)?;
        let commits = match query.action {
            COMMIT_OR_RELEASE => true,
            ROLL_BACK => false,
            other => return Err(malformed(format!("the end {other} is not known"))),
        };
        call.end_transaction(&query.transaction_id, commits).await
    }

    async fn do_action_begin_savepoint(
        &self,
        query: ActionBeginSavepointRequest,
        request: Request<Action>,
    ) -> Result<ActionBeginSavepointResult, Status> {
        let call = self.call(&request)?;
        let set = call.set_savepoint(&query.transaction_id, &query.name);
        Ok(ActionBeginSavepointResult {
            savepoint_id: set.await?,
        })
    }

    async fn do_action_end_savepoint(
        &self,
        query: ActionEndSavepointRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let call = self.call(&request)?;
        let end = match query.action {
            COMMIT_OR_RELEASE => End::Release,
            ROLL_BACK => End::RollBack,
            other => return Err(malformed(format!("the end {other} is not known"))),
        };
        call.end_savepoint(&query.savepoint_id, end).await
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let info = FlightInfo::decode(&*query.info).map_err(malformed)?;
        match self.call(&request)?.cancel(&info) {
            // Both actions use the same number.
            true => Ok(ActionCancelQueryResult {
                result: CancelStatus::Cancelled as i32,
            }),
            false => Err(nothing_to_cancel()),
        }
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Self as FlightService>::DoActionStream>, Status> {
        let call = self.call(&request)?;
        let action = request.into_inner();
        if action.r#type != CANCEL_FLIGHT_INFO {
            return Err(refusal(
                Code::Unimplemented,
                "0A000",
                format!("the action {} is not supported", action.r#type),
            ));
        }
        let asked = CancelFlightInfoRequest::decode(&*action.body).map_err(malformed)?;
        let info = asked.info.unwrap_or_default();
        if !call.cancel(&info) {
            return Err(nothing_to_cancel());
        }
        let result = CancelFlightInfoResult {
            status: CancelStatus::Cancelled as i32,
        };
        let result = arrow_flight::Result::new(result.encode_to_vec());
        Ok(Response::new(futures::stream::iter([Ok(result)]).boxed()))
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        Some(vec![Ok(ActionType {
            r#type: CANCEL_FLIGHT_INFO.to_owned(),
            description: "Ends the statement of a FlightInfo.".to_owned(),
        })])
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}

fn nothing_to_cancel() -> Status {
    refusal(
        Code::NotFound,
        "26000",
        "there is nothing to cancel: its rows were fetched, or it was never there",
    )
}

/// Removes an answer when its rows are no longer taken.
struct Forgotten(Arc<Shared>, Bytes, Owner);

impl Drop for Forgotten {
    fn drop(&mut self) {
        self.0.answers.remove(&self.1, self.2);
    }
}
