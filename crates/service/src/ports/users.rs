//! Users of the database at the ports of PostgreSQL and Flight SQL: who a client is, what it may do with each statement, and when it is
//! not let in any more.
//!
//! ```text
//! name and SCRAM, certificate, header -> authentication (users, waits) -> Caller: looks at the catalog of now with each statement
//! ```
//!
//! Clients of Flight get a token for their password: the user, an end, and a seal over both and what is kept of the password. So it is
//! good for this run of the server, for a day, and as long as the password is the user's; who shows it gets no other. Nothing is kept
//! of it here.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use orrery_access::{Catalog, Limited, Limits, Name, ShownToScram, UserId};
use orrery_sql::{AnswerBound, AnswerMax, RuledScope, Session, Spent, SqlScope};
use ring::hmac;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::audit;
use crate::errors::ServiceError;
use crate::metering::{Exceeded, PaidStatement, Payment};
use crate::ports::denied::Denied;
use crate::record::StatementRecord;
use crate::service::Service;
use crate::users::authentication::{
    Authentication, CameBy, Who, kept_password, now_s, user_of_certificate,
};

/// How long a token is good.
const TOKEN_S: u64 = 24 * 60 * 60;
/// Tokens begin so.
const TOKEN_MARK: &str = "orrs_";
const BEARER: &str = "Bearer ";

/// The users of a database at one port.
#[derive(Debug, Clone)]
pub struct PortUsers(Arc<Port>);

struct Port {
    service: Arc<Service>,
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
#[derive(Debug, Clone)]
pub struct Caller {
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
    ///
    /// `name`: of the port, as the audit log has it.
    pub fn of(service: &Arc<Service>, name: &'static str) -> Option<Self> {
        let authentication = Arc::clone(service.authentication.as_ref()?);
        let secret: [u8; 32] = rand::random();
        Some(Self(Arc::new(Port {
            service: Arc::clone(service),
            authentication,
            name,
            seal: hmac::Key::new(hmac::HMAC_SHA256, &secret),
        })))
    }

    /// What a name shows to a client that will show that it knows the password (SCRAM-SHA-256), whether there is such a user or not.
    ///
    /// # Errors
    /// When no password for the name is looked at now.
    pub fn scram(&self, name: &str, client: IpAddr) -> Result<ScramAttempt, Denied> {
        let port = &self.0;
        let shown = port.authentication.shown_to_scram(name);
        Ok(ScramAttempt {
            shown: shown.map_err(|error| port.denied(error, client))?,
            port: Arc::clone(port),
            name: name.to_owned(),
            client,
        })
    }

    /// The user of this name, if the names of a client's certificate are the user's.
    pub fn of_certificate(
        &self,
        name: &str,
        certificate: &[String],
        client: IpAddr,
    ) -> Option<Caller> {
        let port = &self.0;
        let catalog = port.authentication.catalog().ok()?;
        let named = catalog.user_named(&Name::new(name).ok()?).ok()?.id;
        let user = user_of_certificate(&catalog, certificate)?;
        (user == named).then(|| Caller {
            port: Arc::clone(port),
            who: user.into(),
            name: name.to_owned(),
            client,
            came: Came::Certificate(certificate.to_vec()),
        })
    }

    /// Who sends a call with these values of `Authorization`, by a connection whose client has a certificate with these names, if it has
    /// one. Tokens that [`Caller::token`] gave are known, too.
    ///
    /// # Errors
    /// When what they say of that is wrong, or nobody unknown may see anything.
    pub async fn of_header(
        &self,
        authorization: &[String],
        certificate: Option<&[String]>,
        client: IpAddr,
    ) -> Result<Caller, Denied> {
        let known = self.0.caller(authorization, certificate, client).await;
        known.map_err(|error| self.0.denied(error, client))
    }

    /// Whom another process that serves the database has let in ([`Caller::passport`]), which vouches for it.
    ///
    /// # Errors
    /// When it is no such text, or there is no such user any more.
    pub fn of_passport(&self, passport: &str, client: IpAddr) -> Result<Caller, Denied> {
        let port = &self.0;
        let known = || {
            let passport: Passport = serde_json::from_str(passport).map_err(|error| {
                ServiceError::unknown_asker(format!("another node does not say who asks: {error}"))
            })?;
            let catalog = port.authentication.catalog()?;
            let client = passport.client.unwrap_or(client);
            Ok(port.let_in(&catalog, passport.who, passport.came, client))
        };
        let known = known().map_err(|error| port.denied(error, client))?;
        known.require()?;
        Ok(known)
    }
}

impl Port {
    async fn caller(
        self: &Arc<Self>,
        authorization: &[String],
        certificate: Option<&[String]>,
        client: IpAddr,
    ) -> Result<Caller, ServiceError> {
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
                ServiceError::unknown_asker("the token is not good any more; connect again")
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

    fn let_in(self: &Arc<Self>, catalog: &Catalog, who: Who, came: Came, client: IpAddr) -> Caller {
        let user = who.user.and_then(|id| catalog.user(id));
        let name = user.map(|user| user.name.to_string());
        Caller {
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
    fn denied(&self, error: ServiceError, client: IpAddr) -> Denied {
        let denied = match error {
            ServiceError::UnknownAsker { message } => Denied::Unknown(message),
            ServiceError::TooManyGuesses { wait } => Denied::Wait(wait),
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
        if let Some(audit) = &self.service.audit {
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

/// What a proof of SCRAM is held against (RFC 5802, 3).
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    /// The salt.
    pub salt: Vec<u8>,
    /// Rounds of PBKDF2.
    pub iterations: u32,
    /// By which the proof is checked.
    pub stored_key: [u8; 32],
    /// By which the server shows that it knows the password.
    pub server_key: [u8; 32],
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramKeys")
    }
}

/// An exchange of SCRAM with one client that has begun.
#[derive(Debug)]
pub struct ScramAttempt {
    port: Arc<Port>,
    name: String,
    client: IpAddr,
    shown: ShownToScram,
}

impl ScramAttempt {
    /// What the client's proof is held against.
    pub fn keys(&self) -> ScramKeys {
        let verifier = &self.shown.verifier;
        ScramKeys {
            salt: verifier.salt().to_vec(),
            iterations: verifier.iterations(),
            stored_key: *verifier.stored_key(),
            server_key: *verifier.server_key(),
        }
    }

    /// The user, where the proof was right.
    ///
    /// # Errors
    /// When it was not, or is not looked at now.
    pub fn shown(self, is_right: bool) -> Result<Caller, Denied> {
        let Self {
            port,
            name,
            client,
            shown,
        } = self;
        let known = || -> Result<Caller, ServiceError> {
            let authentication = &port.authentication;
            let (user, kept) = authentication.user_of_proof(&name, &shown, is_right)?;
            let catalog = authentication.catalog()?;
            Ok(port.let_in(&catalog, user.into(), Came::Password(kept), client))
        };
        known().map_err(|error| port.denied(error, client))
    }
}

impl Caller {
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

impl Caller {
    /// The user's number; none of somebody unknown.
    pub fn id(&self) -> Option<u64> {
        self.who.user.map(|user| user.0)
    }

    /// The user's name; empty of somebody unknown.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it may do now.
    ///
    /// # Errors
    /// When it is not let in any more.
    pub async fn admitted(&self) -> Result<Admitted, Denied> {
        self.require()?;
        let asked = self.port.authentication.asked_by(&self.who).await;
        let asked = asked.map_err(|error| self.port.denied(error, self.client))?;
        let limits = asked.rights.limits;
        Ok(Admitted {
            scope: asked.rights.sql,
            ruled: asked.ruled.map(|ruled| Arc::new(ruled.of_sql())),
            limits: (!limits.is_empty()).then(|| CallerLimits {
                port: Arc::clone(&self.port),
                user: self.name.clone(),
                limits,
                client: self.client,
            }),
        })
    }

    /// Fails when it is not let in any more: the user was locked or removed, or what it came in by.
    ///
    /// # Errors
    /// See above.
    pub fn require(&self) -> Result<(), Denied> {
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

    /// A text by which another process that serves the database knows it ([`PortUsers::of_passport`]). It is not for clients.
    pub fn passport(&self) -> String {
        let passport = Passport {
            who: self.who.clone(),
            came: self.came.clone(),
            client: Some(self.client),
        };
        // Texts and numbers alone; what is none is nobody there.
        serde_json::to_string(&passport).unwrap_or_default()
    }

    /// A text by which it is known from now on ([`PortUsers::of_header`]), if it has none already; with the word before it.
    pub fn token(&self) -> Option<String> {
        match (&self.came, self.who.user) {
            (Came::Password(kept), Some(user)) => Some(self.port.token(user, kept)),
            _ => None,
        }
    }
}

/// What a caller may do now.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// What it reads and changes; everything if none.
    pub scope: Option<Arc<SqlScope>>,
    /// How rules by query found that, where there are such rules: what it reads is the state of these, and what it changes goes by what
    /// they find there.
    pub ruled: Option<Arc<RuledScope>>,
    /// None where nothing is limited.
    limits: Option<CallerLimits>,
}

impl Admitted {
    /// Holds a session to what the caller may do, in its open transaction too.
    pub async fn hold(&self, session: &mut Session) {
        session.set_scope(self.scope.clone());
        session.set_ruled(self.ruled.clone());
        session.go_by_transaction().await;
    }

    /// Whether statements are counted.
    pub fn is_limited(&self) -> bool {
        self.limits.is_some()
    }

    /// Counts a statement, and has the session's work paid for, until what is returned is dropped. To be called where tokio runs.
    /// `record`: of the statement, which is told what it costs.
    ///
    /// # Errors
    /// When it may not begin now.
    pub fn enter(
        &self,
        session: &mut Session,
        record: Option<&Arc<StatementRecord>>,
    ) -> Result<Entered, Denied> {
        let Some(limits) = &self.limits else {
            return Ok(Entered::of_nobody(session));
        };
        limits.enter(session, record)
    }
}

/// A statement that is counted until this is dropped; of nobody who is counted by default.
#[derive(Default)]
pub struct Entered {
    /// How long it may take.
    pub time_max: Option<Duration>,
    /// Why it has to end, when it costs more than there is.
    pub spent: Option<Spent>,
    _paid: Option<PaidStatement>,
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

impl Entered {
    /// Has nobody pay for the session's work.
    pub fn of_nobody(session: &mut Session) -> Self {
        session.set_spending(None);
        session.set_answer_max(None);
        Self::default()
    }
}

/// What a caller may use.
#[derive(Debug, Clone)]
struct CallerLimits {
    port: Arc<Port>,
    user: String,
    limits: Arc<[(Limited, Limits)]>,
    client: IpAddr,
}

impl CallerLimits {
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
        self.port.service.metrics.spent(exceeded.limit());
        denied
    }

    /// How long an answer may be; none where that has no bound.
    fn answer_max(&self, rows: Option<u64>, bytes: Option<u64>) -> Option<AnswerMax> {
        if rows.is_none() && bytes.is_none() {
            return None;
        }
        let limits = self.clone();
        Some(AnswerMax::new(rows, bytes, move |bound| {
            let exceeded = match bound {
                AnswerBound::Rows(max) => Exceeded::Rows { max },
                AnswerBound::Bytes(max) => Exceeded::Bytes { max },
            };
            limits.denied(exceeded).to_string()
        }))
    }

    fn enter(
        &self,
        session: &mut Session,
        record: Option<&Arc<StatementRecord>>,
    ) -> Result<Entered, Denied> {
        let service = &self.port.service;
        let meter = service.accounts.enter(&self.limits, Some(self.client));
        let meter = meter.map_err(|exceeded| self.denied(exceeded))?;
        let memory = service.memory_of(meter.as_ref());
        let time_max = meter.as_ref().and_then(|meter| meter.time_max());
        session.set_answer_max(
            meter
                .as_ref()
                .and_then(|meter| self.answer_max(meter.rows_max(), meter.bytes_max())),
        );
        let (sender, spent) = watch::channel(None);
        let of_all = service.engine.runtime().memory().operators();
        // A statement that changes something finds out by itself, and another is told; it is one refusal in the audit log.
        let (limits, said) = (self.clone(), OnceLock::new());
        let words = Arc::new(move |exceeded| -> String {
            let words = said.get_or_init(|| limits.denied(exceeded).to_string());
            words.clone()
        });
        let pool = memory.as_ref().unwrap_or(of_all);
        let payment = Payment::new(pool, meter, record.cloned(), {
            let words = Arc::clone(&words);
            move |exceeded| words(exceeded)
        });
        session.set_spending(Some(Arc::clone(payment.spending())));
        let paid = PaidStatement::new(payment.watch(), move |exceeded| {
            // Who has ended it meanwhile does not need the words.
            let _ = sender.send(Some(words(exceeded)));
        });
        Ok(Entered {
            time_max,
            spent: Some(spent),
            _paid: Some(paid),
        })
    }
}
