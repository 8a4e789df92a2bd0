//! The catalog of users, groups, keys and rules at one commit, and changes to it.
//!
//! A state is never changed: who looks at one sees it whole, however long it takes. It is small
//! (users and rules, not data), and kept in memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::api_key::{ApiKey, id_of};
use crate::entries::{Entries, damaged, of_json, to_json};
use crate::error::{Error, Result};
use crate::identity::{IDENTITIES_MAX, Identity};
use crate::limits::{Limited, Limits};
use crate::names::Name;
use crate::rule::{Rule, Subject};
use crate::scram::{DecoySecret, ScramVerifier};
use crate::users::{Group, GroupId, User, UserId};

const USER: &str = "user";
const GROUP: &str = "group";
const KEY: &str = "key";
const RULE: &str = "rule";
const LIMITS: &str = "limits";
const DECOYS: &str = "decoys";
const NEXT: &str = "next";

/// Users at most, and groups.
pub const USERS_MAX: usize = 100_000;
/// Keys at most.
pub const KEYS_MAX: usize = 200_000;
/// Rules at most.
pub const RULES_MAX: usize = 100_000;

/// A change of what is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// A user comes, or is another one from now on.
    PutUser(User),
    /// A user goes, with keys and rules.
    DropUser(UserId),
    /// A group comes, or has another name.
    PutGroup(Group),
    /// A group goes, with its rules.
    DropGroup(GroupId),
    /// A key comes.
    PutKey(ApiKey),
    /// A key goes.
    DropKey(String),
    /// A rule comes.
    PutRule(u64, Rule),
    /// A rule goes.
    DropRule(u64),
    /// Limits come, in the place of those there were.
    PutLimits(Limited, Limits),
    /// Limits go.
    DropLimits(Limited),
}

/// The users, groups, keys, rules and limits at one time.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Catalog {
    users: BTreeMap<UserId, User>,
    groups: BTreeMap<GroupId, Group>,
    keys: BTreeMap<String, ApiKey>,
    rules: BTreeMap<u64, Rule>,
    limits: BTreeMap<Limited, Limits>,
    names: BTreeMap<Name, Named>,
    identities: BTreeMap<Identity, Named>,
    /// Comes with the first password of which something is kept for SCRAM: from then on names
    /// without one show the same each time, too.
    decoys: Option<DecoySecret>,
    next: u64,
}

/// The SCRAM parameters that a name presents to a client.
#[derive(Debug)]
pub struct ShownToScram {
    /// What the client's proof is held against.
    pub verifier: ScramVerifier,
    /// The user that the client is if its proof is right. None where no proof can be.
    pub user: Option<UserId>,
    /// The user has a password of which nothing is kept for this: it was set by an older version.
    pub is_too_old: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Named {
    User(UserId),
    Group(GroupId),
}

impl Catalog {
    /// Whether there are no users: then there is no access control.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// A number that no user, group or rule has or had.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// All users, by their numbers.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values()
    }

    /// All groups, by their numbers.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &ApiKey> {
        self.keys.values()
    }

    /// All rules, by their numbers.
    pub fn rules(&self) -> impl Iterator<Item = (u64, &Rule)> {
        self.rules.iter().map(|(number, rule)| (*number, rule))
    }

    /// All limits.
    pub fn limits(&self) -> impl Iterator<Item = (&Limited, &Limits)> {
        self.limits.iter()
    }

    /// Limits, if there are any for just that.
    pub(crate) fn limits_for(&self, limited: &Limited) -> Option<Limits> {
        self.limits.get(limited).copied()
    }

    /// A user by number.
    pub fn user(&self, id: UserId) -> Option<&User> {
        self.users.get(&id)
    }

    /// A group by number.
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// A user by name.
    pub fn user_named(&self, name: &Name) -> Result<&User> {
        let found = match self.names.get(name) {
            Some(Named::User(id)) => self.users.get(id),
            _ => None,
        };
        found.ok_or_else(|| Error::UnknownUser(name.clone()))
    }

    /// A group by name.
    pub fn group_named(&self, name: &Name) -> Result<&Group> {
        let found = match self.names.get(name) {
            Some(Named::Group(id)) => self.groups.get(id),
            _ => None,
        };
        found.ok_or_else(|| Error::UnknownGroup(name.clone()))
    }

    /// The SCRAM parameters of a name. Names of nobody show the same each time, which is made with
    /// `decoys` as long as the database has no secret for that: then no name has anything else to
    /// show.
    pub fn scram(&self, name: &str, decoys: &DecoySecret) -> ShownToScram {
        let decoys = self.decoys.as_ref().unwrap_or(decoys);
        // Made also where it is not needed, so that the time does not tell.
        let decoy = ScramVerifier::decoy(decoys, name);
        let user = Name::new(name).ok();
        let user = user.and_then(|name| self.user_named(&name).ok());
        let password = user.and_then(|user| user.password.as_ref());
        let verifier = password.and_then(|password| password.scram());
        match (user, verifier) {
            (Some(user), Some(verifier)) if user.is_locked => ShownToScram {
                // Its own salt, so that nobody sees when a user is locked.
                verifier: verifier.shut(decoy),
                user: None,
                is_too_old: false,
            },
            (Some(user), Some(verifier)) => ShownToScram {
                verifier: verifier.clone(),
                user: Some(user.id),
                is_too_old: false,
            },
            (_, None) | (None, _) => ShownToScram {
                verifier: decoy,
                user: None,
                is_too_old: password.is_some(),
            },
        }
    }

    /// Whether a user is there and may come in.
    pub fn lets_in(&self, user: UserId) -> bool {
        self.users.get(&user).is_some_and(|user| !user.is_locked)
    }

    /// Whether there is a key that has not ended at a time in seconds of the Unix epoch.
    pub fn has_key(&self, id: &str, now: u64) -> bool {
        let key = self.keys.get(id);
        key.is_some_and(|key| key.ends.is_none_or(|ends| now < ends))
    }

    /// The user of a key, at a time in seconds of the Unix epoch. None where the user is locked.
    pub fn user_of_key(&self, text: &str, now: u64) -> Option<&User> {
        self.key_and_user(text, now).map(|(_, user)| user)
    }

    /// The key and its user.
    pub fn key_and_user(&self, text: &str, now: u64) -> Option<(&ApiKey, &User)> {
        let key = self.keys.get(id_of(text)?)?;
        let user = self.users.get(&key.user)?;
        (key.is(text, now) && !user.is_locked).then_some((key, user))
    }

    /// The user of an identity. None where the user is locked.
    pub fn user_of_identity(&self, identity: &Identity) -> Option<&User> {
        match self.identities.get(identity)? {
            Named::User(id) => self.users.get(id).filter(|user| !user.is_locked),
            Named::Group(_) => None,
        }
    }

    /// The group of an identity.
    pub fn group_of_identity(&self, identity: &Identity) -> Option<&Group> {
        match self.identities.get(identity)? {
            Named::Group(id) => self.groups.get(id),
            Named::User(_) => None,
        }
    }

    /// The catalog with a user in further groups, named by an identity provider.
    #[must_use]
    pub fn with_user_in(&self, user: UserId, groups: &BTreeSet<GroupId>) -> Self {
        let mut with = self.clone();
        if let Some(user) = with.users.get_mut(&user) {
            let known = groups.iter().filter(|id| self.groups.contains_key(id));
            user.groups.extend(known);
        }
        with
    }

    /// The rules about who asks: a user, or nobody who is known. Of a user that is gone or locked
    /// there are none.
    pub fn rules_of(&self, user: Option<UserId>) -> impl Iterator<Item = &Rule> {
        let known = user.and_then(|id| self.users.get(&id));
        let known = known.filter(|user| !user.is_locked);
        let is_gone = user.is_some() && known.is_none();
        self.rules.values().filter(move |rule| {
            let is_about = match rule.subject {
                Subject::Anyone => true,
                Subject::Authenticated => known.is_some(),
                Subject::User(id) => known.is_some_and(|user| user.id == id),
                Subject::Group(id) => known.is_some_and(|user| user.groups.contains(&id)),
            };
            is_about && !is_gone
        })
    }

    /// The catalog after a change.
    ///
    /// # Errors
    /// When it names what is not there or takes a name that is taken, there would be no
    /// administrator any more, or there would be too much. Nothing is changed then.
    pub fn after(&self, change: Change) -> Result<Self> {
        let mut after = self.clone();
        match change {
            Change::PutUser(user) => after.put_user(user)?,
            Change::DropUser(id) => after.drop_user(id)?,
            Change::PutGroup(group) => after.put_group(group)?,
            Change::DropGroup(id) => after.drop_group(id)?,
            Change::PutKey(key) => after.put_key(key)?,
            Change::DropKey(id) => {
                let gone = after.keys.remove(&id);
                gone.map(drop).ok_or(Error::UnknownKey(id.clone()))?;
                after.limits.remove(&Limited::Key(id));
            }
            Change::PutRule(number, rule) => after.put_rule(number, rule)?,
            Change::DropRule(number) => {
                let gone = after.rules.remove(&number);
                gone.map(drop).ok_or(Error::UnknownRule(number))?;
            }
            Change::PutLimits(limited, limits) => after.put_limits(limited, limits)?,
            Change::DropLimits(limited) => {
                let gone = after.limits.remove(&limited);
                gone.map(drop).ok_or(Error::UnknownLimits)?;
            }
        }
        after.require_administrator(self)?;
        Ok(after)
    }

    /// All that is known, as it is kept.
    pub(crate) fn entries(&self) -> Result<Entries> {
        let mut entries = Entries::new();
        let mut put = |kind: &str, id: String, value: String| {
            entries.insert((kind.to_owned(), id), value);
        };
        for (id, user) in &self.users {
            put(USER, id.0.to_string(), to_json(user)?);
        }
        for (id, group) in &self.groups {
            put(GROUP, id.0.to_string(), to_json(group)?);
        }
        for (id, key) in &self.keys {
            put(KEY, id.clone(), to_json(key)?);
        }
        for (number, rule) in &self.rules {
            put(RULE, number.to_string(), to_json(rule)?);
        }
        for (limited, limits) in &self.limits {
            put(LIMITS, to_json(limited)?, to_json(limits)?);
        }
        if let Some(decoys) = &self.decoys {
            put(DECOYS, String::new(), to_json(decoys)?);
        }
        if self.next > 0 {
            put(NEXT, String::new(), self.next.to_string());
        }
        Ok(entries)
    }

    /// The same the other way.
    ///
    /// # Errors
    /// When the entries are not what [`Self::entries`] makes.
    pub(crate) fn of_entries(entries: &Entries) -> Result<Self> {
        let mut catalog = Self::default();
        let of_kind = |kind: &'static str| {
            let entries = entries.iter().filter(move |((it, _), _)| it == kind);
            entries.map(|((_, id), value)| (id, value))
        };
        // Before the users, the first of whom would bring another one.
        for (_, value) in of_kind(DECOYS) {
            catalog.decoys = Some(of_json(value)?);
        }
        // Users name groups, keys and rules name users.
        for (_, value) in of_kind(GROUP) {
            catalog.put_group(of_json(value)?)?;
        }
        for (_, value) in of_kind(USER) {
            catalog.put_user(of_json(value)?)?;
        }
        for (_, value) in of_kind(KEY) {
            catalog.put_key(of_json(value)?)?;
        }
        for (number, value) in of_kind(RULE) {
            catalog.put_rule(of_json(number)?, of_json(value)?)?;
        }
        for (limited, value) in of_kind(LIMITS) {
            catalog.put_limits(of_json(limited)?, of_json(value)?)?;
        }
        for (_, value) in of_kind(NEXT) {
            catalog.next = catalog.next.max(of_json(value)?);
        }
        match catalog.entries()? == *entries {
            true => Ok(catalog),
            false => Err(damaged("another version of this program wrote it")),
        }
    }

    fn put_user(&mut self, user: User) -> Result<()> {
        require_room("users", self.users.len(), USERS_MAX)?;
        if let Some(unknown) = user.groups.iter().find(|id| !self.groups.contains_key(id)) {
            return Err(Error::Rule {
                place: user.name.to_string(),
                why: format!("there is no group with the number {}", unknown.0),
            });
        }
        self.name(&user.name, Named::User(user.id))?;
        let before = self.users.get(&user.id).map(|user| &user.identities);
        let before = before.cloned().unwrap_or_default();
        self.identify(&before, &user.identities, Named::User(user.id))?;
        self.note_number(user.id.0);
        let password = user.password.as_ref();
        if password.is_some_and(|password| password.scram().is_some()) {
            self.decoys.get_or_insert_default();
        }
        if let Some(before) = self.users.insert(user.id, user.clone())
            && before.name != user.name
        {
            self.names.remove(&before.name);
        }
        Ok(())
    }

    fn drop_user(&mut self, id: UserId) -> Result<()> {
        let Some(gone) = self.users.remove(&id) else {
            return Ok(());
        };
        self.names.remove(&gone.name);
        self.identities.retain(|_, of| *of != Named::User(gone.id));
        self.keys.retain(|_, key| key.user != id);
        self.drop_subject(Subject::User(id));
        Ok(())
    }

    fn put_group(&mut self, group: Group) -> Result<()> {
        require_room("groups", self.groups.len(), USERS_MAX)?;
        self.name(&group.name, Named::Group(group.id))?;
        let before = self.groups.get(&group.id).map(|group| &group.identities);
        let before = before.cloned().unwrap_or_default();
        self.identify(&before, &group.identities, Named::Group(group.id))?;
        self.note_number(group.id.0);
        if let Some(before) = self.groups.insert(group.id, group.clone())
            && before.name != group.name
        {
            self.names.remove(&before.name);
        }
        Ok(())
    }

    fn drop_group(&mut self, id: GroupId) -> Result<()> {
        let Some(gone) = self.groups.remove(&id) else {
            return Ok(());
        };
        self.names.remove(&gone.name);
        self.identities.retain(|_, of| *of != Named::Group(gone.id));
        for user in self.users.values_mut() {
            user.groups.remove(&id);
        }
        self.drop_subject(Subject::Group(id));
        Ok(())
    }

    /// Rules and limits of who is gone.
    fn drop_subject(&mut self, gone: Subject) {
        self.rules.retain(|_, rule| rule.subject != gone);
        let keys = &self.keys;
        self.limits.retain(|limited, _| match limited {
            Limited::Who(subject) => *subject != gone,
            Limited::Key(key) => keys.contains_key(key),
        });
    }

    fn put_key(&mut self, key: ApiKey) -> Result<()> {
        require_room("keys", self.keys.len(), KEYS_MAX)?;
        if !self.users.contains_key(&key.user) {
            return Err(Error::UnknownKey(key.id));
        }
        self.keys.insert(key.id.clone(), key);
        Ok(())
    }

    fn put_rule(&mut self, number: u64, rule: Rule) -> Result<()> {
        require_room("rules", self.rules.len(), RULES_MAX)?;
        rule.check()?;
        self.require_known(rule.subject)?;
        self.note_number(number);
        self.rules.insert(number, rule);
        Ok(())
    }

    fn put_limits(&mut self, limited: Limited, limits: Limits) -> Result<()> {
        require_room("limits", self.limits.len(), RULES_MAX)?;
        limits.check()?;
        match &limited {
            Limited::Who(subject) => self.require_known(*subject)?,
            Limited::Key(key) if self.keys.contains_key(key) => {}
            Limited::Key(key) => return Err(Error::UnknownKey(key.clone())),
        }
        self.limits.insert(limited, limits);
        Ok(())
    }

    fn require_known(&self, subject: Subject) -> Result<()> {
        let is_known = match subject {
            Subject::Anyone | Subject::Authenticated => true,
            Subject::User(id) => self.users.contains_key(&id),
            Subject::Group(id) => self.groups.contains_key(&id),
        };
        match is_known {
            true => Ok(()),
            false => Err(Error::Rule {
                place: format!("{subject:?}"),
                why: "there is no such user or group".to_owned(),
            }),
        }
    }

    fn name(&mut self, name: &Name, of: Named) -> Result<()> {
        match self.names.get(name) {
            Some(other) if *other != of => Err(Error::Taken(name.clone())),
            _ => {
                self.names.insert(name.clone(), of);
                Ok(())
            }
        }
    }

    /// Somebody is called by these from now on, and not by those before.
    fn identify(
        &mut self,
        before: &BTreeSet<Identity>,
        now: &BTreeSet<Identity>,
        of: Named,
    ) -> Result<()> {
        if now.len() > IDENTITIES_MAX {
            return Err(Error::TooMany {
                what: "identities of a user or group",
                max: IDENTITIES_MAX,
            });
        }
        for identity in before.difference(now) {
            self.identities.remove(identity);
        }
        for identity in now {
            match self.identities.get(identity) {
                Some(other) if *other != of => {
                    return Err(Error::IdentityTaken(identity.clone()));
                }
                _ => self.identities.insert(identity.clone(), of),
            };
        }
        Ok(())
    }

    fn note_number(&mut self, number: u64) {
        self.next = self.next.max(number + 1);
    }

    /// Where there are users there is somebody who can administer.
    fn require_administrator(&self, before: &Self) -> Result<()> {
        let administrator = |catalog: &Self| {
            let mut users = catalog.users.values();
            users
                .find(|user| user.is_administrator && !user.is_locked)
                .map(|user| user.name.clone())
        };
        match (administrator(before), administrator(self)) {
            (Some(last), None) => Err(Error::LastAdministrator(last)),
            (None, None) if !self.users.is_empty() => Err(Error::NoAdministrator),
            _ => Ok(()),
        }
    }
}

fn require_room(what: &'static str, there: usize, max: usize) -> Result<()> {
    match there < max {
        true => Ok(()),
        false => Err(Error::TooMany { what, max }),
    }
}

#[cfg(test)]
pub(crate) mod tests;
