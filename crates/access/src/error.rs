//! The errors of access commands.

use crate::identity::{Identity, IdentityError};
use crate::names::{Name, NameError};

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// See the module. None of them holds a password or a key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A password that is not taken.
    #[error("not a password: {why}")]
    Password {
        /// What passwords are.
        why: String,
    },
    /// A key that is not made.
    #[error("no key: {why}")]
    Key {
        /// Why.
        why: String,
    },
    /// What others call somebody, and cannot be.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// An identity is one user's, or one group's.
    #[error("the identity `{0}` belongs to another user or group already; remove it there first")]
    IdentityTaken(Identity),
    /// There is no such user.
    #[error("there is no user `{0}`")]
    UnknownUser(Name),
    /// There is no such group.
    #[error("there is no group `{0}`")]
    UnknownGroup(Name),
    /// There is no such key.
    #[error("there is no key `{0}`")]
    UnknownKey(String),
    /// There is no such rule.
    #[error("there is no rule {0}")]
    UnknownRule(u64),
    /// There are no such limits.
    #[error("there are no limits of that user, group or key; `orrery limit list` lists them")]
    UnknownLimits,
    /// A user or group of the name is there already.
    #[error("`{0}` is there already; users and groups share their names")]
    Taken(Name),
    /// Without an administrator nobody could make one.
    #[error("`{0}` is the last administrator; make another one first")]
    LastAdministrator(Name),
    /// The first user would be able to do nothing, and everybody else neither.
    #[error("the first user of a database has to be an administrator; add --administrator")]
    NoAdministrator,
    /// Somebody has no right to have it done.
    #[error("{} may not {what}", name.as_ref().map_or("nobody".to_owned(), |name| format!("`{name}`")))]
    NotAllowed {
        /// Who, where there is such a user.
        name: Option<Name>,
        /// What, as a command says it.
        what: String,
    },
    /// A rule that cannot be meant.
    #[error("not a rule: {why}, at `{place}`")]
    Rule {
        /// The part that is wrong.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// The catalog cannot be read or written.
    #[error("the users of the database cannot be read or written: {what}")]
    Kept {
        /// Why.
        what: String,
    },
    /// More than there may be.
    #[error("there are {max} {what} already, which is the limit; remove some first")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
}
