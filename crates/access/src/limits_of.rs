//! The limits that hold for one asker, out of all that are set.
//!
//! ```text
//! user's own, else the larger of the groups', else those of every user -> account of the user
//! key's                                                               -> account of the key, beside it
//! those of anyone, where nobody is known                              -> account of the address
//! ```

use crate::limits::{Limited, Limits};
use crate::rule::Subject;
use crate::{Catalog, UserId};

impl Catalog {
    /// The number of a key, if it has limits of its own.
    pub fn limits_key(&self, key: &str) -> Option<String> {
        let key = key.to_owned();
        let limits = self.limits_for(&Limited::Key(key.clone()));
        limits.map(|_| key)
    }

    /// The accounts that a request is charged to, with their limits: of the user (or of nobody
    /// known, whose account the caller divides by address) and of the key by which the user came
    /// in. Those that limit nothing are left out.
    pub fn limits_of(&self, user: Option<UserId>, key: Option<&str>) -> Vec<(Limited, Limits)> {
        let of = |subject| {
            let limits = self.limits_for(&Limited::Who(subject));
            limits.unwrap_or_default()
        };
        let (account, limits) = match user {
            None => (Subject::Anyone, of(Subject::Anyone)),
            Some(id) => {
                let groups = self.user(id).map(|user| &user.groups);
                let groups = groups.into_iter().flatten();
                let of_groups = groups
                    .map(|group| of(Subject::Group(*group)))
                    .fold(Limits::default(), Limits::larger);
                let own = of(Subject::User(id));
                let limits = own.or(of_groups).or(of(Subject::Authenticated));
                (Subject::User(id), limits)
            }
        };
        let of_key = key.and_then(|key| {
            let key = Limited::Key(key.to_owned());
            self.limits_for(&key).map(|limits| (key, limits))
        });
        let of_user = (!limits.is_none()).then_some((Limited::Who(account), limits));
        of_user.into_iter().chain(of_key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::tests::with_users;
    use crate::{ApiKey, Change, GroupId};

    fn concurrent(count: u32) -> Limits {
        Limits {
            concurrent: Some(count),
            ..Limits::default()
        }
    }

    #[test]
    fn a_users_own_limits_win_over_groups_and_these_over_everybodys() {
        let (bob, group) = (UserId(3), GroupId(2));
        let rows = Limits {
            rows: Some(7),
            ..concurrent(9)
        };
        let catalog = [
            (Subject::Anyone, concurrent(1)),
            (Subject::Authenticated, rows),
            (Subject::Group(group), concurrent(4)),
        ]
        .into_iter()
        .fold(with_users(), |catalog, (subject, limits)| {
            let change = Change::PutLimits(Limited::Who(subject), limits);
            catalog.after(change).unwrap()
        });
        let expected = Limits {
            rows: Some(7),
            ..concurrent(4)
        };
        let account = Limited::Who(Subject::User(bob));
        assert_eq!(
            catalog.limits_of(Some(bob), None),
            [(account.clone(), expected)]
        );
        let of_root = catalog.limits_of(Some(UserId(1)), None);
        assert_eq!(of_root, [(Limited::Who(Subject::User(UserId(1))), rows)]);
        let unknown = catalog.limits_of(None, None);
        assert_eq!(unknown, [(Limited::Who(Subject::Anyone), concurrent(1))]);

        let (key, _) = ApiKey::new(bob, "", 0, None);
        let limited = Limited::Key(key.id.clone());
        let unknown_key = Change::PutLimits(limited.clone(), concurrent(1));
        assert!(catalog.after(unknown_key.clone()).is_err());
        let catalog = catalog.after(Change::PutKey(key.clone())).unwrap();
        let catalog = catalog.after(unknown_key).unwrap();
        let both = catalog.limits_of(Some(bob), Some(&key.id));
        assert_eq!(both, [(account, expected), (limited, concurrent(1))]);
        let again = Catalog::of_entries(&catalog.entries().unwrap());
        assert_eq!(again.as_ref(), Ok(&catalog));
        // Whoever goes takes them along.
        let catalog = catalog.after(Change::DropUser(bob)).unwrap();
        let catalog = catalog.after(Change::DropGroup(group)).unwrap();
        assert_eq!(catalog.limits().count(), 2);
    }
}
