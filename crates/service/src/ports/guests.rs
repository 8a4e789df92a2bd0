//! Guests: clients of other cluster nodes whose changes run here, with their users and limits.
//!
//! Their changes are not forwarded further; the node that they are connected to lists their
//! statements.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use orrery_sql::{Error, GuestHeld, GuestUser, Guests, KnowGuest, Session, SqlState};

use crate::cluster::nodes::{Answers, Cluster, Work};
use crate::ports::users::{Admitted, Caller, Entered, PortUsers};
use crate::service::Service;

/// Answers statements of other nodes' clients until the returned value is dropped.
///
/// # Errors
/// When the cluster has a handler for them already.
pub fn answer_guests(cluster: &dyn Cluster, service: &Arc<Service>) -> Result<Arc<Guests>, String> {
    let users = PortUsers::of(service, "another node");
    let threads = service.query_threads.handle().clone();
    let know: KnowGuest = {
        let service = Arc::clone(service);
        Arc::new(move |passport| known(&service, users.as_ref(), passport))
    };
    let guests = Guests::new(service.sql.clone(), know, threads);
    let answering = Arc::downgrade(&guests);
    let answers: Answers = Arc::new(move |request| match answering.upgrade() {
        Some(guests) => guests.answer(request),
        None => stream::once(async { Err("this node stops".to_owned()) }).boxed(),
    });
    cluster.answer(Work::Statements, answers)?;
    Ok(guests)
}

/// The user of a passport; no particular user if the database has none.
fn known(
    service: &Arc<Service>,
    users: Option<&PortUsers>,
    passport: Option<&str>,
) -> Result<GuestUser, Error> {
    let caller = match (users, passport) {
        (Some(users), Some(passport)) => {
            // The client's address is known, and was checked, at the node that it is connected to.
            let client = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            Some(users.of_passport(passport, client)?)
        }
        (None, None) => None,
        _ => {
            let words = "one of the processes knows users of the database, and the other none";
            let error = Error::new(SqlState::InvalidAuthorization, words);
            return Err(error.with_hint("Start them again, with the same options."));
        }
    };
    let begins = (Arc::clone(service), caller.clone());
    Ok(GuestUser {
        begin: Box::new(move |session| {
            let (service, caller) = begins.clone();
            Box::pin(async move { begin(&service, caller.as_ref(), session).await })
        }),
        require: Box::new(move || match &caller {
            Some(caller) => Ok(caller.require()?),
            None => Ok(()),
        }),
    })
}

/// Begins a statement: what the caller may do now, and a turn.
async fn begin(
    service: &Service,
    caller: Option<&Caller>,
    mut session: Session,
) -> Result<(Session, GuestHeld), Error> {
    let entered = match caller {
        Some(caller) => {
            let admitted: Admitted = caller.admitted().await?;
            admitted.hold(&mut session).await;
            admitted.enter(&mut session, None)?
        }
        None => Entered::of_nobody(&mut session),
    };
    let turn = service.turn_of(&session).await;
    let busy = |error| Error::new(SqlState::InsufficientResources, format!("{error}"));
    let turn = turn.map_err(busy)?;
    let held = GuestHeld {
        spent: entered.spent.clone(),
        turn: Box::new((entered, turn)),
    };
    Ok((session, held))
}
