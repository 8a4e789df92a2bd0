//! Commands of administrators on users, groups, keys and rules, as the command line and the admin
//! socket send them.
//!
//! ```text
//! command (JSON, or arguments) -> may they? -> catalog after it, and what is seen once: a password, a key
//! ```

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::api_key::NOTE_BYTES_MAX;
use crate::{
    ApiKey, Catalog, Change, Error, Group, GroupId, Identity, KeptPassword, Limited, Limits, Name,
    Result, Right, Rule, Subject, Target, User, UserId, new_password,
};

/// A command of an administrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// A user comes.
    AddUser {
        /// The name.
        user: Name,
        /// The password.
        password: NewPassword,
        /// May see, change and administer everything.
        #[serde(default)]
        administrator: bool,
        /// Groups that are there.
        #[serde(default)]
        groups: Vec<Name>,
        /// What those call the user who vouch for it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        identities: Vec<Identity>,
    },
    /// A user is another from now on, in what is given.
    SetUser {
        /// The name.
        user: Name,
        /// Another password, or none.
        #[serde(default)]
        password: Option<NewPassword>,
        /// May see, change and administer everything, or no more.
        #[serde(default)]
        administrator: Option<bool>,
        /// Is let in by nothing, or again.
        #[serde(default)]
        locked: Option<bool>,
        /// Those who vouch for the user call it so, too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        identities: Vec<Identity>,
        /// Or no more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        no_identities: Vec<Identity>,
    },
    /// A user goes, with keys and rules.
    RemoveUser {
        /// The name.
        user: Name,
    },
    /// A group comes.
    AddGroup {
        /// The name.
        group: Name,
    },
    /// A group is called otherwise from now on by those who vouch for users.
    SetGroup {
        /// The name.
        group: Name,
        /// They call it so, too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        identities: Vec<Identity>,
        /// Or no more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        no_identities: Vec<Identity>,
    },
    /// A group goes, with its rules.
    RemoveGroup {
        /// The name.
        group: Name,
    },
    /// Users are in a group from now on.
    Join {
        /// The group.
        group: Name,
        /// The users.
        users: Vec<Name>,
    },
    /// Users are in it no more.
    Leave {
        /// The group.
        group: Name,
        /// The users.
        users: Vec<Name>,
    },
    /// A user gets a key.
    AddKey {
        /// Whose it is.
        user: Name,
        /// What it is for.
        #[serde(default)]
        note: String,
        /// From when on it is nobody's any more, in seconds of the Unix epoch.
        #[serde(default)]
        ends: Option<u64>,
    },
    /// A key goes.
    RemoveKey {
        /// Its number, as a list of keys has it.
        key: String,
    },
    /// A rule comes.
    Grant {
        /// Whom it is about.
        to: Whom,
        /// What they may do.
        right: Right,
        /// With what.
        on: Target,
    },
    /// A rule goes.
    Revoke {
        /// Its number, as a list of rules has it.
        rule: u64,
    },
    /// Somebody may use so much from now on, and what is not said is not limited.
    SetLimits {
        /// Whom it is about.
        of: LimitedWhom,
        /// How much.
        limits: Limits,
    },
    /// Limits go.
    RemoveLimits {
        /// Whom they were about.
        of: LimitedWhom,
    },
}

/// The password of a command.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewPassword {
    /// This one.
    Given(String),
    /// One that is made, and seen once.
    Made,
    /// None: only keys let the user in.
    None,
}

/// The subject of a rule, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whom {
    /// Everybody, also who has said nothing of themselves.
    Anyone,
    /// Everybody who is a user.
    Authenticated,
    /// One user.
    User(Name),
    /// Who is in a group.
    Group(Name),
}

/// The subject of limits, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedWhom {
    /// One key, beside what its user may use.
    Key(String),
    /// Each user that it stands for; anyone is each address from which somebody unknown asks.
    #[serde(untagged)]
    Who(Whom),
}

/// The output of a command beside the new catalog. Passwords and keys are seen here and never
/// again.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// The password that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The text of the key that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The number of the rule that came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<u64>,
}

/// A command that is done, as the admin socket answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The number of the last commit after it.
    pub commit: u64,
    /// What is seen once.
    #[serde(flatten)]
    pub given: Given,
}

impl std::fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Given(_) => "Given",
            Self::Made => "Made",
            Self::None => "None",
        })
    }
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Given")
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

impl Command {
    /// The catalog after the command, at a time in seconds of the Unix epoch.
    ///
    /// # Errors
    /// When it names what is not there, a name that is taken, or what cannot be one, or there would
    /// be no administrator any more.
    pub fn apply(&self, catalog: &Catalog, now: u64) -> Result<(Catalog, Given)> {
        let mut given = Given::default();
        let after = match self {
            Self::AddUser {
                user,
                password,
                administrator,
                groups,
                identities,
            } => {
                let groups = groups.iter().map(|name| Ok(catalog.group_named(name)?.id));
                catalog.after(Change::PutUser(User {
                    id: UserId(catalog.next_number()),
                    name: user.clone(),
                    password: password.kept(&mut given)?,
                    is_administrator: *administrator,
                    is_locked: false,
                    groups: groups.collect::<Result<BTreeSet<GroupId>>>()?,
                    identities: identities.iter().cloned().collect(),
                }))?
            }
            Self::SetUser {
                user,
                password,
                administrator,
                locked,
                identities,
                no_identities,
            } => {
                let mut user = catalog.user_named(user)?.clone();
                if let Some(password) = password {
                    user.password = password.kept(&mut given)?;
                }
                user.is_administrator = administrator.unwrap_or(user.is_administrator);
                user.is_locked = locked.unwrap_or(user.is_locked);
                identify(&mut user.identities, identities, no_identities);
                catalog.after(Change::PutUser(user))?
            }
            Self::RemoveUser { user } => {
                catalog.after(Change::DropUser(catalog.user_named(user)?.id))?
            }
            Self::AddGroup { group } => catalog.after(Change::PutGroup(Group {
                id: GroupId(catalog.next_number()),
                name: group.clone(),
                identities: BTreeSet::new(),
            }))?,
            Self::SetGroup {
                group,
                identities,
                no_identities,
            } => {
                let mut group = catalog.group_named(group)?.clone();
                identify(&mut group.identities, identities, no_identities);
                catalog.after(Change::PutGroup(group))?
            }
            Self::RemoveGroup { group } => {
                catalog.after(Change::DropGroup(catalog.group_named(group)?.id))?
            }
            Self::Join { group, users } => with_members(catalog, group, users, |groups, id| {
                groups.insert(id);
            })?,
            Self::Leave { group, users } => with_members(catalog, group, users, |groups, id| {
                groups.remove(&id);
            })?,
            Self::AddKey { user, note, ends } => {
                if note.len() > NOTE_BYTES_MAX {
                    return Err(Error::Key {
                        why: format!("its note has more than {NOTE_BYTES_MAX} bytes"),
                    });
                }
                if ends.is_some_and(|ends| ends <= now) {
                    return Err(Error::Key {
                        why: "it would have ended already".to_owned(),
                    });
                }
                let user = catalog.user_named(user)?.id;
                let (key, text) = ApiKey::new(user, note, now, *ends);
                given.key = Some(text.show().to_owned());
                catalog.after(Change::PutKey(key))?
            }
            Self::RemoveKey { key } => catalog.after(Change::DropKey(key.clone()))?,
            Self::Grant { to, right, on } => {
                let rule = Rule {
                    subject: to.subject(catalog)?,
                    right: *right,
                    target: on.clone(),
                };
                // Said twice, it is one.
                if let Some((number, _)) = catalog.rules().find(|(_, other)| **other == rule) {
                    given.rule = Some(number);
                    return Ok((catalog.clone(), given));
                }
                let number = catalog.next_number();
                given.rule = Some(number);
                catalog.after(Change::PutRule(number, rule))?
            }
            Self::Revoke { rule } => catalog.after(Change::DropRule(*rule))?,
            Self::SetLimits { of, limits } => {
                catalog.after(Change::PutLimits(of.limited(catalog)?, *limits))?
            }
            Self::RemoveLimits { of } => catalog.after(Change::DropLimits(of.limited(catalog)?))?,
        };
        Ok((after, given))
    }

    /// Whether a user may have it done: an administrator all, others what is about rules of what
    /// they administer, and keys of their own.
    pub fn is_allowed(&self, catalog: &Catalog, user: UserId) -> bool {
        if catalog.administers(Some(user)) {
            return true;
        }
        let is_mine = |name: &Name| catalog.user_named(name).is_ok_and(|it| it.id == user);
        match self {
            Self::Grant { on, .. } => catalog.administers_target(user, on),
            Self::Revoke { rule } => {
                let mut rules = catalog.rules();
                let rule = rules.find(|(number, _)| number == rule);
                rule.is_some_and(|(_, rule)| catalog.administers_target(user, &rule.target))
            }
            Self::AddKey { user, .. } => is_mine(user),
            Self::RemoveKey { key } => {
                let mut keys = catalog.keys();
                keys.any(|it| it.id == *key && it.user == user)
            }
            Self::AddUser { .. }
            | Self::SetUser { .. }
            | Self::RemoveUser { .. }
            | Self::AddGroup { .. }
            | Self::SetGroup { .. }
            | Self::RemoveGroup { .. }
            | Self::Join { .. }
            | Self::Leave { .. }
            | Self::SetLimits { .. }
            | Self::RemoveLimits { .. } => false,
        }
    }

    /// A short summary without secrets, for the commit log and the audit log.
    pub fn summary(&self) -> String {
        let listed = |names: &[Name]| {
            let names: Vec<&str> = names.iter().map(Name::as_str).collect();
            names.join(", ")
        };
        match self {
            Self::AddUser { user, .. } => format!("add user {user}"),
            Self::SetUser { user, .. } => format!("change user {user}"),
            Self::RemoveUser { user } => format!("remove user {user}"),
            Self::AddGroup { group } => format!("add group {group}"),
            Self::SetGroup { group, .. } => format!("change group {group}"),
            Self::RemoveGroup { group } => format!("remove group {group}"),
            Self::Join { group, users } => format!("{} into group {group}", listed(users)),
            Self::Leave { group, users } => format!("{} out of group {group}", listed(users)),
            Self::AddKey { user, .. } => format!("add a key of {user}"),
            Self::RemoveKey { key } => format!("remove key {key}"),
            Self::Grant { to, right, on } => format!("grant {right} on {on} to {to}"),
            Self::Revoke { rule } => format!("revoke rule {rule}"),
            Self::SetLimits { of, .. } => format!("limit {of}"),
            Self::RemoveLimits { of } => format!("limit {of} no more"),
        }
    }
}

fn identify(of: &mut BTreeSet<Identity>, more: &[Identity], no_more: &[Identity]) {
    of.extend(more.iter().cloned());
    for identity in no_more {
        of.remove(identity);
    }
}

/// The catalog after users have come into a group or gone out of it.
fn with_members(
    catalog: &Catalog,
    group: &Name,
    users: &[Name],
    change: impl Fn(&mut BTreeSet<GroupId>, GroupId),
) -> Result<Catalog> {
    let group = catalog.group_named(group)?.id;
    let mut after = catalog.clone();
    for name in users {
        let mut user = catalog.user_named(name)?.clone();
        change(&mut user.groups, group);
        after = after.after(Change::PutUser(user))?;
    }
    Ok(after)
}

impl NewPassword {
    fn kept(&self, given: &mut Given) -> Result<Option<KeptPassword>> {
        match self {
            Self::Given(password) => KeptPassword::new(password).map(Some),
            Self::Made => {
                let password = new_password();
                let kept = KeptPassword::new(&password)?;
                given.password = Some(password);
                Ok(Some(kept))
            }
            Self::None => Ok(None),
        }
    }
}

impl Whom {
    fn subject(&self, catalog: &Catalog) -> Result<Subject> {
        Ok(match self {
            Self::Anyone => Subject::Anyone,
            Self::Authenticated => Subject::Authenticated,
            Self::User(name) => Subject::User(catalog.user_named(name)?.id),
            Self::Group(name) => Subject::Group(catalog.group_named(name)?.id),
        })
    }

    /// The same, the other way; `None` where there is no such user or group.
    pub(crate) fn of(subject: Subject, catalog: &Catalog) -> Option<Self> {
        Some(match subject {
            Subject::Anyone => Self::Anyone,
            Subject::Authenticated => Self::Authenticated,
            Subject::User(id) => Self::User(catalog.user(id)?.name.clone()),
            Subject::Group(id) => Self::Group(catalog.group(id)?.name.clone()),
        })
    }
}

impl LimitedWhom {
    fn limited(&self, catalog: &Catalog) -> Result<Limited> {
        match self {
            Self::Key(key) => Ok(Limited::Key(key.clone())),
            Self::Who(whom) => whom.subject(catalog).map(Limited::Who),
        }
    }

    /// The same, the other way; `None` where there is no such user or group.
    pub(crate) fn of(limited: &Limited, catalog: &Catalog) -> Option<Self> {
        match limited {
            Limited::Key(key) => Some(Self::Key(key.clone())),
            Limited::Who(subject) => Whom::of(*subject, catalog).map(Self::Who),
        }
    }
}

impl std::fmt::Display for LimitedWhom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key) => write!(f, "key {key}"),
            Self::Who(whom) => whom.fmt(f),
        }
    }
}

impl std::fmt::Display for Whom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anyone => f.write_str("anyone"),
            Self::Authenticated => f.write_str("authenticated"),
            Self::User(name) => write!(f, "user {name}"),
            Self::Group(name) => write!(f, "group {name}"),
        }
    }
}

#[cfg(test)]
mod tests;
