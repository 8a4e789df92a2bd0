//! Users and groups, with numbers that are never reused.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::names::Name;
use crate::password::KeptPassword;

/// The number of a user, never used again.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(pub u64);

/// The number of a group, never used again.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupId(pub u64);

/// A user.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct User {
    /// The number by which others know the user; a new user of the same name is another one.
    pub id: UserId,
    /// The name.
    pub name: Name,
    /// None where others vouch for the user: an OpenID provider, a certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<KeptPassword>,
    /// May see, change and administer everything.
    #[serde(default)]
    pub is_administrator: bool,
    /// Known, and let in by nothing.
    #[serde(default)]
    pub is_locked: bool,
    /// The groups that the user is in.
    #[serde(default)]
    pub groups: BTreeSet<GroupId>,
    /// What those call the user who vouch for it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub identities: BTreeSet<Identity>,
}

/// A group of users.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its number.
    pub id: GroupId,
    /// Its name.
    pub name: Name,
    /// What those call the group who vouch for it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub identities: BTreeSet<Identity>,
}
