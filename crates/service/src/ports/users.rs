//! The database's users at the ports of PostgreSQL and Flight SQL: authenticates clients, and finds
//! the rights of each statement.
//!
//! ```text
//! name and SCRAM, certificate, header -> authentication (users, delays)
//!     -> Caller: reads the current catalog with each statement
//! ```
//!
//! Flight clients get a token for their password: the user, an expiry time, and a seal over both
//! and over the stored password hash. So a token is valid for this run of the server, for a day,
//! and until the password changes; a client that shows a token gets no new one. The server stores
//! no tokens.

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

/// Lifetime of a token, in seconds.
const TOKEN_S: u64 = 24 * 60 * 60;
/// Prefix of tokens.
const TOKEN_MARK: &str = "orrs_";
const BEARER: &str = "Bearer ";

/// The users of a database at one port.
#[derive(Debug, Clone)]
pub struct PortUsers(Arc<Port>);

struct Port {
    service: Arc<Service>,
    authentication: Arc<Authentication>,
    /// Name of the port in the audit log.
    name: &'static str,
    /// Key of the tokens' seal, for this run of the server.
    seal: hmac::Key,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A client that was authenticated.
#[derive(Debug, Clone)]
pub struct Caller {
    port: Arc<Port>,
    who: Who,
    name: String,
    client: IpAddr,
    came: Came,
}

/// The data that nodes exchange about a client: its user, and the credentials it came with.
#[derive(Debug, Serialize, Deserialize)]
struct Passport {
    who: Who,
    came: Came,
    /// The client's address at its own node; nodes of earlier versions do not send it.
    #[serde(default)]
    client: Option<IpAddr>,
}

/// The credentials of a client, which must remain valid while it is connected.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Came {
    Nothing,
    /// A password; this is its stored hash.
    Password(String),
    /// A token for a password with this stored hash. It gets no new token, so that its end is
    /// final.
    OwnToken(String),
    Key(String),
    /// A provider's token; it is checked with each call.
    Token,
    Certificate(Vec<String>),
}

impl PortUsers {
    /// The users of a database; none if the database has none.
    ///
    /// `name`: the port's name in the audit log.
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

    /// Begins a SCRAM-SHA-256 exchange for a name, whether such a user exists or not.
    ///
    /// # Errors
    /// When passwords for the name are not checked at present.
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

    /// The user of this name, if the certificate's names are that user's.
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

    /// Authenticates a call by its values of `Authorization`, or by the names of the connection's
    /// certificate, if it has one. Accepts tokens of [`Caller::token`], too.
    ///
    /// # Errors
    /// When the credentials are wrong, or unknown senders may see nothing.
    pub async fn of_header(
        &self,
        authorization: &[String],
        certificate: Option<&[String]>,
        client: IpAddr,
    ) -> Result<Caller, Denied> {
        let known = self.0.caller(authorization, certificate, client).await;
        known.map_err(|error| self.0.denied(error, client))
    }

    /// The caller that another node has authenticated and vouches for ([`Caller::passport`]).
    ///
    /// # Errors
    /// When the text is no passport, or the user does not exist any more.
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
            // An unknown sender must have something to see.
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

    /// Makes a token for a user who has shown the password with this stored hash.
    fn token(&self, user: UserId, kept: &str) -> String {
        let until = now_s() + TOKEN_S;
        let seal = hmac::sign(&self.seal, sealed(user, until, kept).as_bytes());
        let seal = URL_SAFE_NO_PAD.encode(seal);
        format!("{BEARER}{TOKEN_MARK}{}.{until}.{seal}", user.0)
    }

    /// Checks a token without its mark; returns its user, and the stored hash of the password.
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

    /// The denial for the client; also writes it to the audit log.
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

/// The sealed text, in which no part can be taken for another.
fn sealed(user: UserId, until: u64, kept: &str) -> String {
    format!("{}.{until}.{kept}", user.0)
}

/// The stored keys that verify a SCRAM proof (RFC 5802, 3).
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    /// The salt.
    pub salt: Vec<u8>,
    /// Rounds of PBKDF2.
    pub iterations: u32,
    /// Verifies the client's proof.
    pub stored_key: [u8; 32],
    /// Proves to the client that the server knows the password.
    pub server_key: [u8; 32],
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramKeys")
    }
}

/// A SCRAM exchange that has begun.
#[derive(Debug)]
pub struct ScramAttempt {
    port: Arc<Port>,
    name: String,
    client: IpAddr,
    shown: ShownToScram,
}

impl ScramAttempt {
    /// The keys that the client's proof is verified with.
    pub fn keys(&self) -> ScramKeys {
        let verifier = &self.shown.verifier;
        ScramKeys {
            salt: verifier.salt().to_vec(),
            iterations: verifier.iterations(),
            stored_key: *verifier.stored_key(),
            server_key: *verifier.server_key(),
        }
    }

    /// The caller, if the proof was right.
    ///
    /// # Errors
    /// When the proof was wrong, or is not accepted at present.
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
    /// The user's id; none for an unknown sender.
    pub fn id(&self) -> Option<u64> {
        self.who.user.map(|user| user.0)
    }

    /// The user's name; empty for an unknown sender.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the caller may do now.
    ///
    /// # Errors
    /// When the caller is denied by now.
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

    /// Fails if the user or the credentials were locked or removed.
    ///
    /// # Errors
    /// [`Denied::Gone`], or a failure to read the users.
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

    /// A text by which another process of the database knows this caller
    /// ([`PortUsers::of_passport`]). Not for clients.
    pub fn passport(&self) -> String {
        let passport = Passport {
            who: self.who.clone(),
            came: self.came.clone(),
            client: Some(self.client),
        };
        // The passport consists of texts and numbers, so this cannot fail; an empty text is no
        // passport.
        serde_json::to_string(&passport).unwrap_or_default()
    }

    /// A new token ([`PortUsers::of_header`]) with `Bearer` before it; none if the caller came with
    /// a token.
    pub fn token(&self) -> Option<String> {
        match (&self.came, self.who.user) {
            (Came::Password(kept), Some(user)) => Some(self.port.token(user, kept)),
            _ => None,
        }
    }
}

/// The rights and limits of a caller at present.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// What the caller may read and change; everything if none.
    pub scope: Option<Arc<SqlScope>>,
    /// The rules by query and their state, where there are such rules: the caller reads that state,
    /// and its changes are checked against the graphs found there.
    pub ruled: Option<Arc<RuledScope>>,
    /// None if nothing is limited.
    limits: Option<CallerLimits>,
}

impl Admitted {
    /// Restricts a session to the caller's rights, in its open transaction too.
    pub async fn hold(&self, session: &mut Session) {
        session.set_scope(self.scope.clone());
        session.set_ruled(self.ruled.clone());
        session.go_by_transaction().await;
    }

    /// Whether the caller's statements are counted.
    pub fn is_limited(&self) -> bool {
        self.limits.is_some()
    }

    /// Counts a statement, and charges for the session's work, until the returned value is dropped.
    /// Must be called within a tokio runtime. `record`: the record that the cost is added to.
    ///
    /// # Errors
    /// When the statement may not begin now.
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

/// A statement, counted until this is dropped; the default is counted nowhere.
#[derive(Default)]
pub struct Entered {
    /// Time limit of the statement.
    pub time_max: Option<Duration>,
    /// Signals that the statement must end because its budget is used up.
    pub spent: Option<Spent>,
    _paid: Option<PaidStatement>,
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

impl Entered {
    /// Sets the session up so that nobody is charged.
    pub fn of_nobody(session: &mut Session) -> Self {
        session.set_spending(None);
        session.set_answer_max(None);
        Self::default()
    }
}

/// The limits of a caller.
#[derive(Debug, Clone)]
struct CallerLimits {
    port: Arc<Port>,
    user: String,
    limits: Arc<[(Limited, Limits)]>,
    client: IpAddr,
}

impl CallerLimits {
    /// The denial for the client; also counts it, and writes it to the audit log.
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

    /// The limit of the answer's size; none if unlimited.
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
        // A statement that changes data notices by itself, another one is told; the audit log has
        // one refusal.
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
            // If the statement has ended meanwhile, the message is not needed.
            let _ = sender.send(Some(words(exceeded)));
        });
        Ok(Entered {
            time_max,
            spent: Some(spent),
            _paid: Some(paid),
        })
    }
}
