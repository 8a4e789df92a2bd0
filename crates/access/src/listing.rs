//! Listings of users, groups, keys, rules and limits for administrators, without secrets.

use serde::{Deserialize, Serialize};

use crate::command::{LimitedWhom, Whom};
use crate::{Catalog, Identity, Limits, Name, Right, Target};

/// A listing of the catalog, each part by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The users.
    pub users: Vec<ListedUser>,
    /// The groups.
    pub groups: Vec<ListedGroup>,
    /// The keys.
    pub keys: Vec<ListedKey>,
    /// The rules.
    pub rules: Vec<ListedRule>,
    /// The limits.
    #[serde(default)]
    pub limits: Vec<ListedLimits>,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedUser {
    /// The name.
    pub name: Name,
    /// May see, change and administer everything.
    pub administrator: bool,
    /// Is let in by nothing.
    pub locked: bool,
    /// May come in with one.
    pub password: bool,
    /// The groups that the user is in.
    pub groups: Vec<Name>,
    /// What those call the user who vouch for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<Identity>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedGroup {
    /// The name.
    pub name: Name,
    /// Who is in it.
    pub users: Vec<Name>,
    /// What those call it who vouch for users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<Identity>,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedKey {
    /// Its number.
    pub key: String,
    /// Whose it is.
    pub user: Name,
    /// What it is for.
    pub note: String,
    /// When it was made, seconds of the Unix epoch.
    pub made: u64,
    /// From when on it is nobody's any more.
    pub ends: Option<u64>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRule {
    /// Its number.
    pub rule: u64,
    /// Whom it is about.
    pub to: Whom,
    /// What they may do.
    pub right: Right,
    /// With what.
    pub on: Target,
}

/// Limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedLimits {
    /// Whom they are for.
    pub of: LimitedWhom,
    /// How much that is.
    pub limits: Limits,
}

impl Listing {
    /// The listing of a catalog.
    pub fn of(catalog: &Catalog) -> Self {
        let name_of_group = |id| catalog.group(id).map(|group| group.name.clone());
        let users = catalog.users().map(|user| ListedUser {
            name: user.name.clone(),
            administrator: user.is_administrator,
            locked: user.is_locked,
            password: user.password.is_some(),
            groups: user
                .groups
                .iter()
                .copied()
                .filter_map(name_of_group)
                .collect(),
            identities: user.identities.iter().cloned().collect(),
        });
        let groups = catalog.groups().map(|group| {
            let members = catalog
                .users()
                .filter(|user| user.groups.contains(&group.id));
            ListedGroup {
                name: group.name.clone(),
                users: members.map(|user| user.name.clone()).collect(),
                identities: group.identities.iter().cloned().collect(),
            }
        });
        let keys = catalog.keys().filter_map(|key| {
            Some(ListedKey {
                key: key.id.clone(),
                user: catalog.user(key.user)?.name.clone(),
                note: key.note.clone(),
                made: key.made,
                ends: key.ends,
            })
        });
        let rules = catalog.rules().filter_map(|(number, rule)| {
            Some(ListedRule {
                rule: number,
                to: Whom::of(rule.subject, catalog)?,
                right: rule.right,
                on: rule.target.clone(),
            })
        });
        let limits = catalog.limits().filter_map(|(limited, limits)| {
            Some(ListedLimits {
                of: LimitedWhom::of(limited, catalog)?,
                limits: *limits,
            })
        });
        Self {
            users: users.collect(),
            groups: groups.collect(),
            keys: keys.collect(),
            rules: rules.collect(),
            limits: limits.collect(),
        }
    }
}
