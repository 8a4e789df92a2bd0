//! Access control: users, groups, keys, rules and limits, and the rights they give an asker.
//!
//! ```text
//! password, key  ->  User  ->  rules about the user, the user's groups, everybody  ->  what may be seen and changed
//! ```
//!
//! A [`Catalog`] has all users, rules and limits at one commit. Rights are enforced elsewhere: in
//! scans, by the read scopes that are made of them.

mod api_key;
mod catalog;
mod command;
mod entries;
mod error;
mod graph_query;
mod identity;
mod known;
mod limits;
mod limits_of;
mod listing;
mod names;
mod password;
mod rights;
mod rule;
mod scram;
mod store;
mod users;

pub use api_key::{ApiKey, KeyText};
pub use catalog::{Catalog, Change, KEYS_MAX, RULES_MAX, ShownToScram, USERS_MAX};
pub use command::{Command, Done, Given, LimitedWhom, NewPassword, Whom};
pub use error::{Error, Result};
pub use identity::{IDENTITIES_MAX, IDENTITY_BYTES_MAX, Identity, IdentityError};
pub use known::{Attempt, Known};
pub use limits::{Budget, Limited, Limits};
pub use listing::{ListedGroup, ListedKey, ListedLimits, ListedRule, ListedUser, Listing};
pub use names::{NAME_BYTES_MAX, Name, NameError};
pub use password::{KeptPassword, PASSWORD_BYTES_MAX, PASSWORD_BYTES_MIN, new_password};
pub use rights::{GraphQuery, TableRights};
pub use rule::{Right, Rule, Subject, Target};
pub use scram::{DecoySecret, SCRAM_ITERATIONS, ScramVerifier};
pub use store::{change, first_administrator, read, write};
pub use users::{Group, GroupId, User, UserId};
