//! Authentication: finds the user of a request and their rights, from a password, key, token or
//! certificate.
//!
//! Passwords come by Basic (RFC 7617) or SCRAM of PostgreSQL's clients, keys and provider's tokens
//! by Bearer (RFC 6750). An unknown sender has the rights of anyone.
//!
//! ```text
//! Authorization, or else the connection's certificate
//!   -> user of the catalog, and groups that a token lists
//!   -> Asked: the scope of reads, rights to change -> extensions of the request
//! ```
//!
//! HTTP authenticates each request; the other ports check their callers' rights with each
//! statement. A database without users has no authentication: then everyone may see everything.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use orrery_access::{
    Attempt, Catalog, DecoySecret, GroupId, Identity, KeptPassword, Known, Limited, Limits,
    NAME_BYTES_MAX, Name, Right, ShownToScram, User, UserId,
};
use orrery_sparql::WriteScope;
use orrery_sql::{RuledScope, SqlScope};
use orrery_storage::{Asker, Database, GraphNames, ReadScope, Snapshot};
use orrery_tls::PeerNames;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::errors::ServiceError;
use crate::oidc::{OidcProvider, Refused, has_form_of_token};
use crate::users::graph_rules::{FoundGraphs, GraphRules, Queries};

/// How long the catalog of an older state is used: another process may have changed it.
const CATALOG_AGE_MAX: Duration = Duration::from_secs(1);
/// Password checks at the same time: each takes a core, and 19 MiB.
const CHECKS_MAX: usize = 2;
/// Number of senders whose rights are cached; beyond it the cache is cleared.
const ASKED_MAX: usize = 20_000;

/// The users of a database, and the caches of their rights and passwords.
#[derive(Debug)]
pub struct Authentication {
    database: Arc<Database>,
    kept: Mutex<KeptCatalog>,
    known: Mutex<Known>,
    checks: Semaphore,
    /// Checked if there is no such user, so that the response time does not reveal it.
    decoy: KeptPassword,
    /// Verifiers for unknown names in SCRAM, before the database has a secret of its own for them.
    decoys: DecoySecret,
    /// The provider whose tokens are accepted, if any.
    provider: Option<Arc<OidcProvider>>,
    /// Runs rules by query; until it is set, these rules grant nothing.
    graph_rules: Option<Arc<GraphRules>>,
}

#[derive(Debug)]
struct KeptCatalog {
    catalog: Arc<Catalog>,
    /// The state: its commit, and the number of its history.
    of: (u64, u64),
    read: Instant,
    /// Whether the catalog is read again as soon as there is another commit.
    is_stale: bool,
    /// Rights of recent senders.
    asked: HashMap<Who, Asked>,
}

/// A user, or an unknown sender, and the groups that only a token lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Who {
    /// None for an unknown sender.
    pub user: Option<UserId>,
    groups: BTreeSet<GroupId>,
    /// The key that the user authenticated with, if the key has limits of its own.
    key: Option<String>,
}

/// The kind of credentials that a sender used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CameBy {
    /// None: an unknown sender.
    Nothing,
    /// A password, with the stored hash that it was checked against; the stored hash may have
    /// changed since.
    Password(String),
    /// A key, by its id.
    Key(String),
    /// A provider's token.
    Token,
    /// A certificate of the connection.
    Certificate,
}

impl From<UserId> for Who {
    fn from(user: UserId) -> Self {
        Self {
            user: Some(user),
            ..Self::default()
        }
    }
}

/// The rights of a sender.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The graphs that may be read.
    pub scope: ReadScope,
    /// All other rights.
    pub rights: Rights,
    /// Rules by query, whose graphs are not in the scope yet; none if there are no such rules.
    queries: Option<Arc<Queries<Asked>>>,
    /// The rules by query that were applied, if there are such rules.
    pub ruled: Option<Ruled>,
}

/// A sender with rules by query, whose rights hold for one state.
#[derive(Debug, Clone)]
pub struct Ruled {
    /// The state in which the rules found graphs.
    pub state: Arc<Snapshot>,
    catalog: Arc<Catalog>,
    who: Who,
    queries: Arc<Queries<Asked>>,
    rules: Arc<GraphRules>,
}

impl Ruled {
    /// Converts this for SQL.
    pub fn of_sql(self) -> RuledScope {
        RuledScope {
            state: Arc::clone(&self.state),
            scope_in: Box::new(move |state| {
                let ruled = self.clone();
                Box::pin(async move { ruled.asked_in(&state).await.rights.sql })
            }),
        }
    }

    /// The rights in another state.
    pub async fn asked_in(&self, state: &Arc<Snapshot>) -> Asked {
        let make = |found: &FoundGraphs| Asked::of_who(&self.catalog, &self.who, found);
        self.queries.made(&self.rules, state, make).await
    }
}

/// The rights of a sender beside reading graphs; not in the extensions of a request if there are no
/// users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// The user's id.
    pub id: Option<UserId>,
    /// The user's name.
    pub user: Option<Name>,
    /// The graphs that may be changed.
    pub writes: WriteScope,
    /// Whether all tables may be read.
    pub sees_tables: bool,
    /// The scope in SQL; `None` for all tables and graphs.
    pub sql: Option<Arc<SqlScope>>,
    /// Whether operations on the database as a whole are allowed.
    pub administers: bool,
    /// The limits, by account.
    pub limits: Arc<[(Limited, Limits)]>,
}

/// The credentials of a request.
enum Credentials {
    Password { name: String, password: String },
    Key(String),
}

impl Authentication {
    /// Reads the users of a database; none if it has none.
    ///
    /// # Errors
    /// When the users cannot be read.
    pub fn of(database: &Arc<Database>) -> orrery_access::Result<Option<Self>> {
        let kept = KeptCatalog::read(database)?;
        if kept.catalog.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            database: Arc::clone(database),
            kept: Mutex::new(kept),
            known: Mutex::default(),
            checks: Semaphore::new(CHECKS_MAX),
            decoy: KeptPassword::decoy()?,
            decoys: DecoySecret::new(),
            provider: None,
            graph_rules: None,
        }))
    }

    /// Accepts tokens of a provider from now on.
    pub fn take_tokens_of(&mut self, provider: Arc<OidcProvider>) {
        provider.start();
        self.provider = Some(provider);
    }

    /// Runs rules by query from now on.
    pub fn find_graphs_with(&mut self, rules: GraphRules) {
        self.graph_rules = Some(Arc::new(rules));
    }

    /// The rights of a sender with these values of `Authorization`, over a connection with this
    /// certificate, if any. The header takes precedence; a value that is not text is refused.
    ///
    /// # Errors
    /// When the credentials are wrong, or there are none and unknown senders may see nothing.
    pub async fn asked(
        &self,
        authorization: impl Iterator<Item = Option<&str>>,
        certificate: Option<&PeerNames>,
    ) -> Result<Asked, ServiceError> {
        let certificate = certificate.map(PeerNames::as_slice);
        let (who, _by) = self.who(authorization, certificate).await?;
        self.asked_by(&who).await
    }

    /// The sender with these values of `Authorization` and this certificate, and the kind of
    /// credentials.
    ///
    /// # Errors
    /// When the credentials are wrong.
    pub async fn who(
        &self,
        authorization: impl Iterator<Item = Option<&str>>,
        certificate: Option<&[String]>,
    ) -> Result<(Who, CameBy), ServiceError> {
        let catalog = self.catalog()?;
        Ok(match Credentials::of(authorization)? {
            None => match certificate {
                None => (Who::default(), CameBy::Nothing),
                Some(names) => {
                    let user = user_of_certificate(&catalog, names).ok_or_else(|| {
                        tracing::info!(
                            ?names,
                            "a certificate was refused: it names no user, or several"
                        );
                        ServiceError::unknown_asker(
                            "the certificate of the connection names no user of this server; send another one, or a name and a password (Basic), or a key (Bearer)",
                        )
                    })?;
                    (user.into(), CameBy::Certificate)
                }
            },
            Some(Credentials::Key(token)) if has_form_of_token(&token) => {
                (self.who_of_token(&catalog, &token).await?, CameBy::Token)
            }
            Some(Credentials::Key(text)) => {
                let found = catalog.key_and_user(&text, now_s());
                let (key, user) = found.ok_or_else(wrong)?;
                let who = Who {
                    key: catalog.limits_key(&key.id),
                    ..Who::from(user.id)
                };
                (who, CameBy::Key(key.id.clone()))
            }
            Some(Credentials::Password { name, password }) => {
                let (user, kept) = self.user_of(&catalog, name, password).await?;
                (user.into(), CameBy::Password(kept))
            }
        })
    }

    /// The current rights of a sender.
    ///
    /// # Errors
    /// When unknown senders may see nothing.
    pub async fn asked_by(&self, who: &Who) -> Result<Asked, ServiceError> {
        let catalog = self.catalog()?;
        let is_unknown = who.user.is_none();
        let mut asked = self.what_may(&catalog, who);
        if let (Some(queries), Some(rules)) = (asked.queries.take(), &self.graph_rules) {
            let ruled = Ruled {
                state: self.database.snapshot(),
                catalog: Arc::clone(&catalog),
                who: who.clone(),
                queries,
                rules: Arc::clone(rules),
            };
            asked = ruled.asked_in(&ruled.state).await;
            asked.ruled = Some(ruled);
        }
        match is_unknown && !asked.rights.sees_anything(&asked.scope) {
            true => Err(ServiceError::unknown_asker(
                "this server answers those it knows; send a name and a password (Basic), or a key (Bearer)",
            )),
            false => Ok(asked),
        }
    }

    /// Has the next request read the catalog again.
    pub fn read_again(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.is_stale = true;
    }

    /// Begins a SCRAM exchange for a name, whether such a user exists or not.
    ///
    /// # Errors
    /// When passwords for the name are not checked at present.
    pub fn shown_to_scram(&self, name: &str) -> Result<ShownToScram, ServiceError> {
        self.require_no_wait(name)?;
        Ok(self.catalog()?.scram(name, &self.decoys))
    }

    /// The user of a finished SCRAM exchange, and the stored hash of the password; `is_right` says
    /// whether the proof was right.
    ///
    /// # Errors
    /// When the proof was wrong, wrong proofs were sent meanwhile, or the password has changed.
    pub fn user_of_proof(
        &self,
        name: &str,
        shown: &ShownToScram,
        is_right: bool,
    ) -> Result<(UserId, String), ServiceError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(wrong());
        }
        let catalog = self.catalog()?;
        let now = catalog.scram(name, &self.decoys);
        let kept = now.user.and_then(|user| kept_password(&catalog, user));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Guessing over many connections at once gains nothing.
        if let Some(wait) = known.wait(name, Instant::now()) {
            return Err(ServiceError::TooManyGuesses { wait });
        }
        match now.user.zip(kept) {
            Some((user, kept)) if is_right && now.verifier == shown.verifier => {
                known.was_shown(name);
                Ok((user, kept.to_owned()))
            }
            _ => {
                let wait = known.was_wrong(name, Instant::now());
                match shown.is_too_old {
                    true => tracing::warn!(
                        ?name,
                        ?wait,
                        "the password was set by a version that kept nothing of it for PostgreSQL's clients: set it once more (`orrery user password`)"
                    ),
                    false => tracing::warn!(?name, ?wait, "a password was wrong"),
                }
                Err(wrong())
            }
        }
    }

    fn require_no_wait(&self, name: &str) -> Result<(), ServiceError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.wait(name, Instant::now()) {
            Some(wait) => Err(ServiceError::TooManyGuesses { wait }),
            None => Ok(()),
        }
    }

    /// The current catalog.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub fn catalog(&self) -> Result<Arc<Catalog>, ServiceError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = || kept.is_stale || kept.read.elapsed() > CATALOG_AGE_MAX;
        if state_of(&self.database) != kept.of && is_old() {
            let read = KeptCatalog::read(&self.database).map_err(unreadable)?;
            if read.catalog == kept.catalog {
                (kept.of, kept.read, kept.is_stale) = (read.of, read.read, false);
            } else {
                *kept = read;
            }
        }
        Ok(Arc::clone(&kept.catalog))
    }

    /// The rights of a sender, cached.
    fn what_may(&self, catalog: &Arc<Catalog>, who: &Who) -> Asked {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&kept.catalog, catalog) {
            // The cached catalog is newer by now; this request keeps its own.
            return Asked::with_queries(catalog, who);
        }
        if let Some(asked) = kept.asked.get(who) {
            return asked.clone();
        }
        if kept.asked.len() >= ASKED_MAX {
            kept.asked.clear();
        }
        let asked = Asked::with_queries(catalog, who);
        kept.asked.insert(who.clone(), asked.clone());
        asked
    }

    /// The user and the groups of a provider's token.
    async fn who_of_token(&self, catalog: &Catalog, token: &str) -> Result<Who, ServiceError> {
        let provider = self.provider.as_ref().ok_or_else(wrong)?;
        let vouched = provider.vouched(token).await.map_err(|refused| match refused {
            Refused::Wrong(why) => {
                tracing::info!("a token was refused: {why}");
                wrong()
            }
            Refused::NoKeys => ServiceError::Endpoint {
                message: "the provider of tokens cannot be asked now; try again in a moment, or send a key"
                    .to_owned(),
                is_timeout: false,
            },
        })?;
        let identity = |text: &String| Identity::new(text).ok();
        let user = identity(&vouched.user);
        let user = user.and_then(|identity| catalog.user_of_identity(&identity));
        let user = user.ok_or_else(|| {
            tracing::info!(identity = %vouched.user, "a token was refused: no user has its identity");
            wrong()
        })?;
        let groups = vouched.groups.iter().filter_map(identity);
        let groups = groups.filter_map(|it| catalog.group_of_identity(&it));
        Ok(Who {
            user: Some(user.id),
            groups: groups.map(|group| group.id).collect(),
            key: None,
        })
    }

    /// The user of a name and a password, and the stored hash of that password.
    async fn user_of(
        &self,
        catalog: &Catalog,
        name: String,
        password: String,
    ) -> Result<(UserId, String), ServiceError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(wrong());
        }
        let known_name = Name::new(&name).ok();
        let user = known_name.and_then(|name| catalog.user_named(&name).ok());
        let user = user.filter(|user| !user.is_locked);
        let kept = user.and_then(|user| user.password.as_ref());
        if let Some(user) = self.known_user(&name, &password, kept)? {
            return Ok(user);
        }
        let turn = self.checks.acquire().await;
        let _turn = turn.map_err(|_closed| ServiceError::Stopping)?;
        // Other requests may have guessed in the meantime, or have been right.
        if let Some(user) = self.known_user(&name, &password, kept)? {
            return Ok(user);
        }
        let checked = kept.unwrap_or(&self.decoy).clone();
        let checked = tokio::task::spawn_blocking(move || (checked.is(&password), password)).await;
        let (is_right, password) = checked.map_err(|error| ServiceError::Internal {
            message: format!("a password was not checked: {error}"),
        })?;
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match (user, kept) {
            (Some(User { id, .. }), Some(kept)) if is_right => {
                known.was_right(&name, &password, kept, *id, now);
                Ok((*id, kept.text().to_owned()))
            }
            _ => {
                let wait = known.was_wrong(&name, now);
                tracing::warn!(?name, ?wait, "a password was wrong");
                Err(wrong())
            }
        }
    }

    /// The user, if the password was right a moment ago.
    fn known_user(
        &self,
        name: &str,
        password: &str,
        kept: Option<&KeptPassword>,
    ) -> Result<Option<(UserId, String)>, ServiceError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.attempt(name, password, kept, Instant::now()) {
            Attempt::Known(user) => Ok(kept.map(|kept| (user, kept.text().to_owned()))),
            Attempt::Check => Ok(None),
            Attempt::Wait(wait) => Err(ServiceError::TooManyGuesses { wait }),
        }
    }
}

impl KeptCatalog {
    fn read(database: &Database) -> orrery_access::Result<Self> {
        // Before the snapshot is taken: a commit in between causes another read.
        let (history, read) = (database.history_number(), Instant::now());
        let snapshot = database.snapshot();
        Ok(Self {
            catalog: Arc::new(orrery_access::read(snapshot.tables())?),
            of: (snapshot.commit(), history),
            read,
            is_stale: false,
            asked: HashMap::new(),
        })
    }
}

/// Identifies a state: commits of the same number may belong to two histories, of which one was
/// lost.
fn state_of(database: &Database) -> (u64, u64) {
    let history = database.history_number();
    (database.snapshot().commit(), history)
}

impl Asked {
    /// The rights by a catalog's rules, with its rules by query, which are not applied yet.
    fn with_queries(catalog: &Catalog, who: &Who) -> Self {
        let catalog = who.seen_by(catalog);
        let asked = Self::of(&catalog, who, &FoundGraphs::default());
        let queries = Queries::of(asked.rights.user.as_ref(), catalog.graph_queries(who.user));
        Self { queries, ..asked }
    }

    /// The rights by a catalog's rules, and by the graphs that rules by query have found.
    fn of_who(catalog: &Catalog, who: &Who, found: &FoundGraphs) -> Self {
        Self::of(&who.seen_by(catalog), who, found)
    }

    fn of(catalog: &Catalog, who: &Who, found: &FoundGraphs) -> Self {
        let user = who.user;
        let asker = user.map_or(Asker::Anonymous, |id| Asker::User(id.0));
        let with = |graphs: Option<GraphNames>, found: &GraphNames| {
            let mut graphs = graphs?;
            graphs.extend(found.clone());
            Some(graphs)
        };
        let scope = match with(catalog.graphs_of(user, Right::Read), &found.reads) {
            None => ReadScope::all_graphs(asker),
            Some(graphs) => ReadScope::only(asker, graphs),
        };
        let name = user.and_then(|id| catalog.user(id));
        let sql = sql_scope(catalog, user, &scope);
        Self {
            scope,
            rights: Rights {
                id: user,
                user: name.map(|user| user.name.clone()),
                writes: match with(catalog.graphs_of(user, Right::Write), &found.writes) {
                    None => WriteScope::all_graphs(),
                    Some(graphs) => WriteScope::only(graphs),
                },
                sees_tables: catalog.tables_of(user, Right::Read).is_all(),
                sql,
                administers: catalog.administers(user),
                limits: catalog.limits_of(user, who.key.as_deref()).into(),
            },
            queries: None,
            ruled: None,
        }
    }
}

impl Who {
    /// A catalog in which the user belongs to the groups of the token.
    fn seen_by<'c>(&self, catalog: &'c Catalog) -> Cow<'c, Catalog> {
        match self.user {
            Some(user) if !self.groups.is_empty() => {
                Cow::Owned(catalog.with_user_in(user, &self.groups))
            }
            _ => Cow::Borrowed(catalog),
        }
    }
}

/// The scope of a sender in SQL; `None` if it is everything.
fn sql_scope(catalog: &Catalog, user: Option<UserId>, graphs: &ReadScope) -> Option<Arc<SqlScope>> {
    let scope = SqlScope {
        reads: catalog.tables_of(user, Right::Read).into_names(),
        writes: catalog.tables_of(user, Right::Write).into_names(),
        graphs: graphs.clone(),
        writes_all_graphs: catalog.graphs_of(user, Right::Write).is_none(),
    };
    (!scope.is_everything()).then(|| Arc::new(scope))
}

impl Rights {
    /// Whether the sender may read any graph or table.
    fn sees_anything(&self, scope: &ReadScope) -> bool {
        let tables = self.sql.as_ref().and_then(|sql| sql.reads.as_ref());
        scope.graphs().is_none_or(|graphs| !graphs.is_empty())
            || tables.is_none_or(|tables| !tables.is_empty())
    }

    /// The error for a missing right; unknown senders are asked to authenticate. `what` is a verb
    /// and its object, such as "change data".
    pub fn refusal(&self, what: &str) -> ServiceError {
        match &self.user {
            None => ServiceError::unknown_asker(format!(
                "nobody unknown may {what} here; send a name and a password (Basic), or a key (Bearer)"
            )),
            Some(user) => ServiceError::forbidden(format!("`{user}` may not {what}")),
        }
    }
}

impl Credentials {
    /// Parses the values of `Authorization`.
    fn of<'v>(
        mut values: impl Iterator<Item = Option<&'v str>>,
    ) -> Result<Option<Self>, ServiceError> {
        let value = match (values.next(), values.next()) {
            (None, _) => return Ok(None),
            (Some(value), None) => value,
            (Some(_), Some(_)) => return Err(wrong()),
        };
        let value = value.ok_or_else(wrong)?;
        let (scheme, given) = value.split_once(' ').ok_or_else(wrong)?;
        let given = given.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Ok(Some(Self::Key(given.to_owned())));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(wrong());
        }
        // Drivers of Flight SQL leave out the padding.
        let given = given.trim_end_matches('=');
        let decoded = STANDARD_NO_PAD.decode(given).map_err(|_error| wrong())?;
        let decoded = String::from_utf8(decoded).map_err(|_error| wrong())?;
        let (name, password) = decoded.split_once(':').ok_or_else(wrong)?;
        Ok(Some(Self::Password {
            name: name.to_owned(),
            password: password.to_owned(),
        }))
    }
}

/// The only user whose identities are among the names of a certificate.
pub fn user_of_certificate(catalog: &Catalog, names: &[String]) -> Option<UserId> {
    let identities = names.iter().filter_map(|name| Identity::new(name).ok());
    let users = identities.filter_map(|it| catalog.user_of_identity(&it).map(|user| user.id));
    let users: BTreeSet<UserId> = users.collect();
    users.first().copied().filter(|_| users.len() == 1)
}

/// The stored hash of a user's password.
pub fn kept_password(catalog: &Catalog, user: UserId) -> Option<&str> {
    let password = catalog.user(user)?.password.as_ref()?;
    Some(password.text())
}

/// Seconds of the Unix epoch.
pub fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// One error for all wrong credentials: it does not reveal which users exist.
fn wrong() -> ServiceError {
    ServiceError::unknown_asker("the name, the password or the key is wrong")
}

fn unreadable(error: orrery_access::Error) -> ServiceError {
    ServiceError::Internal {
        message: error.to_string(),
    }
}
