//! Users of the database at the ports of PostgreSQL and Flight SQL: who a client is, what it may do with each statement, and when it is not let in any more.
//!
//! ```text
//! name and SCRAM, certificate, header -> authentication (users, waits) -> Caller: looks at the catalog of now with each message and each statement
//! ```
//!
//! Clients of Flight get a token for their password: the user, an end, and a seal over both and what is kept of the password. So it is good for this run of the server, for a
//! day, and as long as the password is the user's; who shows it gets no other. Nothing is kept of it here.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use orrery_access::{Catalog, Limited, Limits, Name, ShownToScram, UserId};
use orrery_sql::{
    Admitted, AnswerBound, AnswerMax, Caller, CallerLimits, Denied, Entered, ScramAttempt,
    ScramKeys, Users,
};
use ring::hmac;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::audit;
use crate::authentication::{
    Authentication, CameBy, Ruled, Who, kept_password, now_s, user_of_certificate,
};
use crate::errors::ServerError;
use crate::metering::{Exceeded, Meter, PaidStatement, Payment};
use crate::sql::scope_of;
use crate::state::ServerState;

/// How long a token is good.
const TOKEN_S: u64 = 24 * 60 * 60;
/// Tokens begin so.
const TOKEN_MARK: &str = "orrs_";
const BEARER: &str = "Bearer ";

/// The users of a server at one port.
pub(crate) struct PortUsers(Arc<Port>);

struct Port {
    state: Arc<ServerState>,
    authentication: Arc<Authentication>,
    /// As the audit log has it.
    name: &'static str,
    /// Of this run of the server.
    seal: hmac::Key,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A client that was let in.
#[derive(Debug)]
struct PortCaller {
    port: Arc<Port>,
    who: Who,
    name: String,
    client: IpAddr,
    came: Came,
}

/// What nodes tell each other of a client: who it is, and by what it came in.
#[derive(Debug, Serialize, Deserialize)]
struct Passport {
    who: Who,
    came: Came,
    /// From where, as the node says that it is at; nodes of earlier versions do not.
    #[serde(default)]
    client: Option<IpAddr>,
}

/// By what it came in, which has to be there as long as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Came {
    Nothing,
    /// A password of which this is kept.
    Password(String),
    /// A token that it got for such a password, which gets no other: its end is its end.
    OwnToken(String),
    Key(String),
    /// The provider's; it is checked with each call.
    Token,
    Certificate(Vec<String>),
}

impl PortUsers {
    /// None where the database has no users.
    pub(crate) fn of(state: &Arc<ServerState>, name: &'static str) -> Option<Arc<dyn Users>> {
        let authentication = Arc::clone(state.authentication.as_ref()?);
        let secret: [u8; 32] = rand::random();
        Some(Arc::new(Self(Arc::new(Port {
            state: Arc::clone(state),
            authentication,
            name,
            seal: hmac::Key::new(hmac::HMAC_SHA256, &secret),
        }))))
    }
}

impl Users for PortUsers {
    fn scram(&self, name: &str, client: IpAddr) -> Result<Box<dyn ScramAttempt>, Denied> {
        let port = &self.0;
        let shown = port.authentication.shown_to_scram(name);
        Ok(Box::new(Exchange {
            shown: shown.map_err(|error| port.denied(error, client))?,
            port: Arc::clone(port),
            name: name.to_owned(),
            client,
        }))
    }

    fn of_certificate(
        &self,
        name: &str,
        certificate: &[String],
        client: IpAddr,
    ) -> Option<Arc<dyn Caller>> {
        let port = &self.0;
        let catalog = port.authentication.catalog().ok()?;
        let named = catalog.user_named(&Name::new(name).ok()?).ok()?.id;
        let user = user_of_certificate(&catalog, certificate)?;
        (user == named).then(|| -> Arc<dyn Caller> {
            Arc::new(PortCaller {
                port: Arc::clone(port),
                who: user.into(),
                name: name.to_owned(),
                client,
                came: Came::Certificate(certificate.to_vec()),
            })
        })
    }

    fn of_header<'a>(
        &'a self,
        authorization: &'a [String],
        certificate: Option<&'a [String]>,
        client: IpAddr,
    ) -> BoxFuture<'a, Result<Arc<dyn Caller>, Denied>> {
        Box::pin(async move {
            let known = self.0.caller(authorization, certificate, client).await;
            let known = known.map_err(|error| self.0.denied(error, client))?;
            Ok(Arc::new(known) as Arc<dyn Caller>)
        })
    }

    fn of_passport(&self, passport: &str, client: IpAddr) -> Result<Arc<dyn Caller>, Denied> {
        let port = &self.0;
        let known = || {
            let passport: Passport = serde_json::from_str(passport).map_err(|error| {
                ServerError::unknown_asker(format!("another node does not say who asks: {error}"))
            })?;
            let catalog = port.authentication.catalog()?;
            let client = passport.client.unwrap_or(client);
            Ok(port.let_in(&catalog, passport.who, passport.came, client))
        };
        let known = known().map_err(|error| port.denied(error, client))?;
        known.require()?;
        Ok(Arc::new(known))
    }
}

impl Port {
    async fn caller(
        self: &Arc<Self>,
        authorization: &[String],
        certificate: Option<&[String]>,
        client: IpAddr,
    ) -> Result<PortCaller, ServerError> {
        let of_token = match authorization {
            [one] => one
                .strip_prefix(BEARER)
                .and_then(|it| it.strip_prefix(TOKEN_MARK)),
            _ => None,
        };
        if let Some(token) = of_token {
            let catalog = self.authentication.catalog()?;
            let opened = self.opened(&catalog, token);
            let (user, kept) = opened.ok_or_else(|| {
                ServerError::unknown_asker("the token is not good any more; connect again")
            })?;
            return Ok(self.let_in(&catalog, user.into(), Came::OwnToken(kept), client));
        }
        let values = authorization.iter().map(|value| Some(value.as_str()));
        let (who, by) = self.authentication.who(values, certificate).await?;
        if who.user.is_none() {
            // Nobody known, who has to have something to see.
            self.authentication.asked_by(&who).await?;
        }
        let came = match by {
            CameBy::Nothing => Came::Nothing,
            CameBy::Password(kept) => Came::Password(kept),
            CameBy::Key(id) => Came::Key(id),
            CameBy::Token => Came::Token,
            CameBy::Certificate => Came::Certificate(certificate.unwrap_or_default().to_vec()),
        };
        let catalog = self.authentication.catalog()?;
        Ok(self.let_in(&catalog, who, came, client))
    }

    fn let_in(
        self: &Arc<Self>,
        catalog: &Catalog,
        who: Who,
        came: Came,
        client: IpAddr,
    ) -> PortCaller {
        let user = who.user.and_then(|id| catalog.user(id));
        let name = user.map(|user| user.name.to_string());
        PortCaller {
            came,
            name: name.unwrap_or_default(),
            port: Arc::clone(self),
            who,
            client,
        }
    }

    /// A token of a user, who has shown the password of which this is kept.
    fn token(&self, user: UserId, kept: &str) -> String {
        let until = now_s() + TOKEN_S;
        let seal = hmac::sign(&self.seal, sealed(user, until, kept).as_bytes());
        let seal = URL_SAFE_NO_PAD.encode(seal);
        format!("{BEARER}{TOKEN_MARK}{}.{until}.{seal}", user.0)
    }

    /// The user of a token without its mark, and what is kept of the password that it was given for.
    fn opened(&self, catalog: &Catalog, token: &str) -> Option<(UserId, String)> {
        let mut parts = token.splitn(3, '.');
        let user = UserId(parts.next()?.parse().ok()?);
        let until = parts.next()?.parse().ok()?;
        let seal = URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
        let kept = kept_password(catalog, user)?;
        let text = sealed(user, until, kept);
        hmac::verify(&self.seal, text.as_bytes(), &seal).ok()?;
        (now_s() < until && catalog.lets_in(user)).then(|| (user, kept.to_owned()))
    }

    /// What a client is told, and what the audit log has of it.
    fn denied(&self, error: ServerError, client: IpAddr) -> Denied {
        let denied = match error {
            ServerError::UnknownAsker { message } => Denied::Unknown(message),
            ServerError::TooManyGuesses { wait } => Denied::Wait(wait),
            other => Denied::Failed(other.line()),
        };
        self.note(None, client, &denied);
        denied
    }

    fn note(&self, user: Option<&str>, client: IpAddr, denied: &Denied) {
        let status = match denied {
            Denied::Unknown(_) | Denied::Gone => 401,
            Denied::Wait(_) | Denied::Concurrent(_) | Denied::UsedUp(_) => 429,
            Denied::Failed(_) => return,
        };
        if let Some(audit) = &self.state.audit {
            audit.denied(&audit::Denied {
                user,
                client: Some(client),
                method: self.name,
                path: match denied {
                    Denied::Unknown(_) | Denied::Wait(_) => "log in",
                    Denied::Gone | Denied::Concurrent(_) | Denied::UsedUp(_) => "statement",
                    Denied::Failed(_) => return,
                },
                status,
            });
        }
    }
}

/// What is sealed. No part can be taken for another.
fn sealed(user: UserId, until: u64, kept: &str) -> String {
    format!("{}.{until}.{kept}", user.0)
}

/// SCRAM with one client.
struct Exchange {
    port: Arc<Port>,
    name: String,
    client: IpAddr,
    shown: ShownToScram,
}

impl ScramAttempt for Exchange {
    fn keys(&self) -> ScramKeys {
        let verifier = &self.shown.verifier;
        ScramKeys {
            salt: verifier.salt().to_vec(),
            iterations: verifier.iterations(),
            stored_key: *verifier.stored_key(),
            server_key: *verifier.server_key(),
        }
    }

    fn shown(self: Box<Self>, is_right: bool) -> Result<Arc<dyn Caller>, Denied> {
        let Self {
            port,
            name,
            client,
            shown,
        } = *self;
        let known = || -> Result<PortCaller, ServerError> {
            let authentication = &port.authentication;
            let (user, kept) = authentication.user_of_proof(&name, &shown, is_right)?;
            let catalog = authentication.catalog()?;
            Ok(port.let_in(&catalog, user.into(), Came::Password(kept), client))
        };
        match known() {
            Ok(caller) => Ok(Arc::new(caller)),
            Err(error) => Err(port.denied(error, client)),
        }
    }
}

impl PortCaller {
    fn is_let_in(&self, catalog: &Catalog) -> bool {
        let Some(user) = self.who.user else {
            return true;
        };
        catalog.lets_in(user)
            && match &self.came {
                Came::Nothing | Came::Token => true,
                Came::Password(kept) | Came::OwnToken(kept) => {
                    kept_password(catalog, user) == Some(kept.as_str())
                }
                Came::Key(id) => catalog.has_key(id, now_s()),
                Came::Certificate(names) => user_of_certificate(catalog, names) == Some(user),
            }
    }
}

impl Caller for PortCaller {
    fn id(&self) -> Option<u64> {
        self.who.user.map(|user| user.0)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn admitted(&self) -> BoxFuture<'_, Result<Admitted, Denied>> {
        Box::pin(async move {
            self.require()?;
            let port = &self.port;
            let denied = |error| port.denied(error, self.client);
            let asked = port
                .authentication
                .asked_by(&self.who)
                .await
                .map_err(denied)?;
            let limits = &asked.rights.limits;
            Ok(Admitted {
                scope: scope_of(&asked.scope, Some(&asked.rights)).map_err(denied)?,
                ruled: asked.ruled.map(Ruled::of_sql),
                limits: (!limits.is_empty()).then(|| -> Arc<dyn CallerLimits> {
                    Arc::new(PortLimits {
                        port: Arc::clone(port),
                        user: self.name.clone(),
                        limits: Arc::clone(limits),
                        client: self.client,
                    })
                }),
            })
        })
    }

    fn require(&self) -> Result<(), Denied> {
        let catalog = self.port.authentication.catalog();
        let catalog = catalog.map_err(|error| self.port.denied(error, self.client))?;
        match self.is_let_in(&catalog) {
            true => Ok(()),
            false => {
                self.port.note(Some(&self.name), self.client, &Denied::Gone);
                Err(Denied::Gone)
            }
        }
    }

    fn passport(&self) -> String {
        let passport = Passport {
            who: self.who.clone(),
            came: self.came.clone(),
            client: Some(self.client),
        };
        // Texts and numbers alone; what is none is nobody there.
        serde_json::to_string(&passport).unwrap_or_default()
    }

    fn token(&self) -> Option<String> {
        match (&self.came, self.who.user) {
            (Came::Password(kept), Some(user)) => Some(self.port.token(user, kept)),
            _ => None,
        }
    }
}

/// What a caller may use.
#[derive(Debug, Clone)]
struct PortLimits {
    port: Arc<Port>,
    user: String,
    limits: Arc<[(Limited, Limits)]>,
    client: IpAddr,
}

impl PortLimits {
    /// What the client is told, and the audit log and the counts of the server have of it.
    fn denied(&self, exceeded: Exceeded) -> Denied {
        let message = match exceeded.retry_after_s() {
            Some(seconds) => format!("{exceeded} (retry after {seconds} s)"),
            None => exceeded.to_string(),
        };
        let denied = match exceeded {
            Exceeded::Concurrent { .. } => Denied::Concurrent(message),
            Exceeded::Cost { .. }
            | Exceeded::TooDear { .. }
            | Exceeded::Rows { .. }
            | Exceeded::Bytes { .. } => Denied::UsedUp(message),
        };
        let user = (!self.user.is_empty()).then_some(self.user.as_str());
        self.port.note(user, self.client, &denied);
        self.port.state.metrics.spent(exceeded.limit());
        denied
    }

    fn answer_max(&self, meter: &Meter) -> Option<Arc<dyn AnswerMax>> {
        let (rows, bytes) = (meter.rows_max(), meter.bytes_max());
        if rows.is_none() && bytes.is_none() {
            return None;
        }
        let limits = self.clone();
        Some(Arc::new(PortAnswerMax {
            limits,
            rows,
            bytes,
        }))
    }
}

/// How long an answer to a caller may be.
#[derive(Debug)]
struct PortAnswerMax {
    limits: PortLimits,
    rows: Option<u64>,
    bytes: Option<u64>,
}

impl AnswerMax for PortAnswerMax {
    fn rows(&self) -> Option<u64> {
        self.rows
    }

    fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    fn too_long(&self, bound: AnswerBound) -> Denied {
        self.limits.denied(match bound {
            AnswerBound::Rows(max) => Exceeded::Rows { max },
            AnswerBound::Bytes(max) => Exceeded::Bytes { max },
        })
    }
}

impl CallerLimits for PortLimits {
    fn enter(&self) -> Result<Entered, Denied> {
        let state = &self.port.state;
        let meter = state.accounts.enter(&self.limits, Some(self.client));
        let meter = meter.map_err(|exceeded| self.denied(exceeded))?;
        let memory = state.memory_of(meter.as_ref());
        let (sender, spent) = watch::channel(None);
        let time_max = meter.as_ref().and_then(|meter| meter.time_max());
        let answer_max = meter.as_ref().and_then(|meter| self.answer_max(meter));
        let of_all = state.engine.runtime().memory().operators();
        // A statement that changes something finds out by itself, and another is told; it is one refusal in the audit log.
        let (limits, said) = (self.clone(), OnceLock::new());
        let words = Arc::new(move |exceeded| -> String {
            let words = said.get_or_init(|| limits.denied(exceeded).to_string());
            words.clone()
        });
        let pool = memory.as_ref().unwrap_or(of_all);
        let payment = Payment::new(pool, meter, None, {
            let words = Arc::clone(&words);
            move |exceeded| words(exceeded)
        });
        let (spending, cost) = (Arc::clone(payment.spending()), payment.watch());
        let held = PaidStatement::new(cost, move |exceeded| {
            // Who has ended it meanwhile does not need the words.
            let _ = sender.send(Some(words(exceeded)));
        });
        Ok(Entered {
            time_max,
            spending,
            answer_max,
            spent,
            held: Box::new(held),
        })
    }
}
