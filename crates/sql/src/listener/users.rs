//! Who asks through a listener, and what they may do: what listeners ask of whoever knows the database's users.
//!
//! ```text
//! a name and SCRAM's exchange, a certificate, a header  -> [Users]  -> [Caller], for as long as the client is there
//! each statement                                        -> [Caller] -> [Admitted]: the scope of now, and what is held while it runs
//! ```
//!
//! Listeners know nothing of catalogs, rules and limits; what they are told here they hold to.
//! Of accounts they get two things: a counter of touches, and an error when the budget is spent.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use orrery_runtime::{Spending, Touched as _};
use orrery_storage::Snapshot;
use tokio::sync::watch;

use crate::catalog::scope::SqlScope;
use crate::listener::turns::Turn;
use crate::listener::watch::Watched;

/// The users of a database.
pub trait Users: Send + Sync + 'static {
    /// What a name shows to a client that will show that it knows the password (SCRAM-SHA-256), whether there is such a user or not.
    ///
    /// # Errors
    /// When no password for the name is looked at now.
    fn scram(&self, name: &str, client: IpAddr) -> Result<Box<dyn ScramAttempt>, Denied>;

    /// The user of this name, if the names of a client's certificate are the user's.
    fn of_certificate(
        &self,
        name: &str,
        certificate: &[String],
        client: IpAddr,
    ) -> Option<Arc<dyn Caller>>;

    /// Who sends a call with these headers `Authorization`, by a connection whose client has a certificate with these names, if it has one. Tokens that [`Caller::token`] gave are known, too.
    fn of_header<'a>(
        &'a self,
        authorization: &'a [String],
        certificate: Option<&'a [String]>,
        client: IpAddr,
    ) -> BoxFuture<'a, Result<Arc<dyn Caller>, Denied>>;

    /// Whom another process that serves the database has let in ([`Caller::passport`]), which vouches for it.
    ///
    /// # Errors
    /// When it is no such text, or there is no such user any more.
    fn of_passport(&self, passport: &str, client: IpAddr) -> Result<Arc<dyn Caller>, Denied>;
}

/// An exchange of SCRAM that has begun.
pub trait ScramAttempt: Send {
    /// What the client's proof is held against.
    fn keys(&self) -> ScramKeys;

    /// The user, where the proof was right.
    ///
    /// # Errors
    /// When it was not, or is not looked at now.
    fn shown(self: Box<Self>, is_right: bool) -> Result<Arc<dyn Caller>, Denied>;
}

/// What a proof is held against (RFC 5802, 3).
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

/// A client that was let in.
pub trait Caller: fmt::Debug + Send + Sync + 'static {
    /// The user's number; none of somebody unknown.
    fn id(&self) -> Option<u64>;

    /// The user's name; empty of somebody unknown.
    fn name(&self) -> &str;

    /// What it may do now.
    ///
    /// # Errors
    /// When it is not let in any more.
    fn admitted(&self) -> BoxFuture<'_, Result<Admitted, Denied>>;

    /// Fails when it is not let in any more: the user was locked or removed, or what it came in by.
    fn require(&self) -> Result<(), Denied>;

    /// A text by which another process that serves the database knows it ([`Users::of_passport`]). It is not for clients.
    fn passport(&self) -> String;

    /// A text by which it is known from now on ([`Users::of_header`]), if it has none already; with the word before it.
    fn token(&self) -> Option<String>;
}

/// What a caller may do now.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// What it reads and changes; everything if none.
    pub scope: Option<Arc<SqlScope>>,
    /// How rules by query found that, where there are such rules: what it reads is the state of these, and what it changes goes by what they find there.
    pub ruled: Option<Arc<dyn RuledScope>>,
    /// Counts its statements; none where nothing is limited.
    pub limits: Option<Arc<dyn CallerLimits>>,
}

/// A scope that rules by query have found: it is of one state.
pub trait RuledScope: fmt::Debug + Send + Sync + 'static {
    /// The state in which they found it.
    fn state(&self) -> &Arc<Snapshot>;

    /// What they find in another; everything if none.
    fn scope_in<'a>(&'a self, state: &'a Arc<Snapshot>) -> BoxFuture<'a, Option<Arc<SqlScope>>>;
}

/// How much a caller may use.
pub trait CallerLimits: fmt::Debug + Send + Sync + 'static {
    /// Counts a statement, until what is returned is dropped. To be called where tokio runs.
    ///
    /// # Errors
    /// When it may not begin now.
    fn enter(&self) -> Result<Entered, Denied>;
}

/// How long an answer to a query may be.
pub trait AnswerMax: fmt::Debug + Send + Sync + 'static {
    /// In rows; without a bound if none.
    fn rows(&self) -> Option<u64>;

    /// In bytes of values, as columns have them ([`bytes_of_values`](crate::bytes_of_values)); without a bound if none.
    fn bytes(&self) -> Option<u64>;

    /// An answer has come to a bound: what the client is told.
    fn too_long(&self, bound: AnswerBound) -> Denied;

    /// So many rows and bytes were handed on. Who adds up several queries ([`WholeAnswer`](crate::WholeAnswer)) counts them.
    fn taken(&self, _rows: u64, _bytes: u64) {}
}

/// To which bound an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBound {
    /// It has more rows than this.
    Rows(u64),
    /// It has more bytes than this.
    Bytes(u64),
}

/// A statement that is counted.
pub struct Entered {
    /// How long it may take.
    pub time_max: Option<Duration>,
    /// What counts its cost, and where its memory comes from: for [`Session::set_spending`](crate::Session::set_spending).
    pub spending: Arc<Spending>,
    /// How long its answer may be: for [`Session::set_answer_max`](crate::Session::set_answer_max).
    pub answer_max: Option<Arc<dyn AnswerMax>>,
    /// Why it has to end, when it costs more than there is: for [`spent`].
    pub spent: Spent,
    /// Counts it.
    pub held: Turn,
}

/// Where is said that a statement costs more than there is.
pub type Spent = watch::Receiver<Option<String>>;

impl Entered {
    /// Its turn, until whose end it is counted. What it has cost is told then to whoever lists statements.
    pub fn within(self, turn: Turn, watched: Option<Arc<dyn Watched>>) -> Turn {
        let told = watched.map(|watched| ToldAtEnd {
            spending: self.spending,
            watched,
        });
        Box::new((told, self.held, turn))
    }
}

/// Tells what a statement has cost.
struct ToldAtEnd {
    spending: Arc<Spending>,
    watched: Arc<dyn Watched>,
}

impl Drop for ToldAtEnd {
    fn drop(&mut self) {
        self.watched.add_touches(self.spending.touches());
    }
}

/// Completes, with what the client is to be told, when a statement costs more than there is; never where nobody says so.
pub async fn spent(said: Option<&Spent>) -> String {
    if let Some(said) = said {
        // The statement may be asked for it again and again.
        let mut said = said.clone();
        if let Ok(said) = said.wait_for(Option::is_some).await
            && let Some(message) = &*said
        {
            return message.clone();
        }
    }
    std::future::pending().await
}

/// Why somebody is not let in, or a statement does not begin. No sentence tells what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// Not who they say, or nobody who is known.
    Unknown(String),
    /// Wrong passwords were sent: none is looked at for some time.
    Wait(Duration),
    /// The user was locked or removed, or what they came in by.
    Gone,
    /// As many statements are running as may.
    Concurrent(String),
    /// What may be used is used up.
    UsedUp(String),
    /// Users cannot be looked at.
    Failed(String),
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(why) | Self::Concurrent(why) | Self::UsedUp(why) | Self::Failed(why) => {
                f.write_str(why)
            }
            Self::Wait(wait) => write!(
                f,
                "wrong passwords were sent for this name; it is not looked at for {} s",
                wait.as_secs() + 1
            ),
            Self::Gone => f.write_str("the user may not come in any more"),
        }
    }
}

impl Denied {
    /// PostgreSQL's code for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "28P01",
            Self::Wait(_) | Self::Gone => "28000",
            Self::Concurrent(_) => "53300",
            Self::UsedUp(_) => "53400",
            Self::Failed(_) => "58000",
        }
    }
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramKeys")
    }
}
