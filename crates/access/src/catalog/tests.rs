use super::*;
use crate::{Right, Target};
use std::collections::BTreeSet;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn user(id: u64, of: &str, is_administrator: bool) -> User {
    User {
        id: UserId(id),
        name: name(of),
        password: None,
        is_administrator,
        is_locked: false,
        identities: BTreeSet::new(),
        groups: BTreeSet::new(),
    }
}

fn rule(subject: Subject, right: Right, graph: &str) -> Rule {
    Rule {
        subject,
        right,
        target: Target::Graph(graph.to_owned()),
    }
}

fn after(catalog: &Catalog, changes: impl IntoIterator<Item = Change>) -> Catalog {
    let mut catalog = catalog.clone();
    for change in changes {
        catalog = catalog.after(change).unwrap();
    }
    catalog
}

/// An administrator (1), a group (2) and a user in it (3).
pub(crate) fn with_users() -> Catalog {
    let group = Group {
        id: GroupId(2),
        name: name("editors"),
        identities: BTreeSet::new(),
    };
    let mut bob = user(3, "bob", false);
    bob.groups.insert(GroupId(2));
    after(
        &Catalog::default(),
        [
            Change::PutUser(user(1, "alice", true)),
            Change::PutGroup(group),
            Change::PutUser(bob),
        ],
    )
}

#[test]
fn the_last_administrator_stays() {
    let catalog = with_users();
    let gone = catalog.after(Change::DropUser(UserId(1)));
    assert_eq!(gone, Err(Error::LastAdministrator(name("alice"))));
    assert!(
        catalog
            .after(Change::PutUser(user(1, "alice", false)))
            .is_err()
    );
    let mut locked = user(1, "alice", true);
    locked.is_locked = true;
    assert!(catalog.after(Change::PutUser(locked)).is_err());
    let two = after(&catalog, [Change::PutUser(user(3, "bob", true))]);
    let one = after(&two, [Change::DropUser(UserId(1))]);
    assert!(one.user_named(&name("alice")).is_err());
    assert!(one.after(Change::DropUser(UserId(3))).is_err());
}

#[test]
fn names_are_of_one_user_or_group() {
    let catalog = with_users();
    for taken in ["alice", "editors"] {
        let change = Change::PutUser(user(9, taken, false));
        assert_eq!(catalog.after(change), Err(Error::Taken(name(taken))));
    }
    let renamed = after(&catalog, [Change::PutUser(user(1, "anna", true))]);
    assert!(renamed.user_named(&name("alice")).is_err());
    assert_eq!(renamed.user_named(&name("anna")).unwrap().id, UserId(1));
    after(&renamed, [Change::PutUser(user(9, "alice", false))]);
}

#[test]
fn rules_are_of_users_their_groups_and_everybody() {
    let rules = [
        rule(Subject::Anyone, Right::Read, "urn:anyone"),
        rule(Subject::Authenticated, Right::Read, "urn:authenticated"),
        rule(Subject::User(UserId(1)), Right::Read, "urn:alice"),
        rule(Subject::Group(GroupId(2)), Right::Write, "urn:editors"),
    ];
    let rules = rules.into_iter().zip(10..);
    let rules = rules.map(|(rule, number)| Change::PutRule(number, rule));
    let catalog = after(&with_users(), rules);
    let seen = |catalog: &Catalog, user: Option<u64>| -> Vec<String> {
        let rules = catalog.rules_of(user.map(UserId));
        let graphs = rules.filter_map(|rule| match &rule.target {
            Target::Graph(iri) => Some(iri.replace("urn:", "")),
            _ => None,
        });
        graphs.collect()
    };
    assert_eq!(seen(&catalog, None), ["anyone"]);
    assert_eq!(
        seen(&catalog, Some(1)),
        ["anyone", "authenticated", "alice"]
    );
    assert_eq!(
        seen(&catalog, Some(3)),
        ["anyone", "authenticated", "editors"]
    );
    // Whose account is gone or locked is not even everybody.
    assert!(seen(&catalog, Some(77)).is_empty());
    let mut bob = catalog.user(UserId(3)).unwrap().clone();
    bob.is_locked = true;
    let locked = after(&catalog, [Change::PutUser(bob)]);
    assert!(seen(&locked, Some(3)).is_empty());
    let ungrouped = after(&catalog, [Change::DropGroup(GroupId(2))]);
    assert_eq!(seen(&ungrouped, Some(3)), ["anyone", "authenticated"]);
    assert_eq!(ungrouped.rules().count(), 3);
    let target = Target::Graph("urn:editors".to_owned());
    assert!(!catalog.administers_target(UserId(3), &target));
    assert!(catalog.administers_target(UserId(1), &target));
}

#[test]
fn whoever_goes_takes_keys_and_rules_along_and_numbers_are_not_used_again() {
    let (key, text) = ApiKey::new(UserId(3), "", 0, None);
    let of_bob = rule(Subject::User(UserId(3)), Right::Read, "urn:x");
    let catalog = after(
        &with_users(),
        [
            Change::PutKey(key.clone()),
            Change::PutRule(20, of_bob.clone()),
        ],
    );
    assert_eq!(
        catalog.user_of_key(text.show(), 5).unwrap().name,
        name("bob")
    );
    assert_eq!(catalog.next_number(), 21);
    let gone = after(&catalog, [Change::DropUser(UserId(3))]);
    assert!(gone.user_of_key(text.show(), 5).is_none());
    assert_eq!((gone.keys().count(), gone.rules().count()), (0, 0));
    assert_eq!(gone.next_number(), 21);
    assert!(gone.after(Change::PutKey(key)).is_err());
    assert!(gone.after(Change::PutRule(21, of_bob)).is_err());
    assert_eq!(
        gone.after(Change::DropRule(20)),
        Err(Error::UnknownRule(20))
    );
}

#[test]
fn an_identity_is_one_users_or_groups_until_it_is_taken_away() {
    let identity = |text: &str| crate::Identity::new(text).unwrap();
    let called = |mut user: User, text: &str| {
        user.identities.insert(identity(text));
        user
    };
    let before = with_users();
    let one = user(8, "one", false);
    let catalog = after(&before, [Change::PutUser(called(one.clone(), "x:1"))]);
    let of = |catalog: &Catalog, text: &str| {
        let user = catalog.user_of_identity(&identity(text));
        user.map(|user| user.id.0)
    };
    assert_eq!((of(&catalog, "x:1"), of(&catalog, "x:2")), (Some(8), None));
    let other = Change::PutUser(called(user(9, "other", false), "x:1"));
    let taken = crate::Error::IdentityTaken(identity("x:1"));
    assert_eq!(catalog.after(other.clone()), Err(taken.clone()));
    let mut group = catalog.group(GroupId(2)).unwrap().clone();
    group.identities.insert(identity("x:1"));
    assert_eq!(catalog.after(Change::PutGroup(group.clone())), Err(taken));

    let mut locked = called(one.clone(), "x:1");
    locked.is_locked = true;
    assert_eq!(of(&after(&catalog, [Change::PutUser(locked)]), "x:1"), None);
    let gone = [
        Change::DropUser(UserId(8)),
        Change::PutUser(one.clone()),
        Change::PutUser(called(one, "x:2")),
    ];
    for gone in gone {
        let catalog = after(&catalog, [gone, other.clone()]);
        assert_eq!(of(&catalog, "x:1"), Some(9));
        let catalog = after(&catalog, [Change::DropUser(UserId(9))]);
        let catalog = after(&catalog, [Change::PutGroup(group.clone())]);
        assert_eq!(of(&catalog, "x:1"), None);
        assert_eq!(
            catalog.group_of_identity(&identity("x:1")).map(|it| it.id),
            Some(GroupId(2))
        );
        let entries = catalog.entries().unwrap();
        assert_eq!(Catalog::of_entries(&entries), Ok(catalog));
    }
}

#[test]
fn who_is_put_into_a_group_by_others_has_its_rules_for_that_time_alone() {
    let outsider = user(8, "one", false);
    let rule = rule(Subject::Group(GroupId(2)), Right::Read, "x:g");
    let changes = [Change::PutUser(outsider), Change::PutRule(20, rule)];
    let catalog = after(&with_users(), changes);
    let rules = |catalog: &Catalog| catalog.rules_of(Some(UserId(8))).count();
    let groups = [GroupId(2), GroupId(77)].into();
    let within = catalog.with_user_in(UserId(8), &groups);
    assert_eq!(rules(&within), rules(&catalog) + 1);
    assert_eq!(within.user(UserId(8)).unwrap().groups, [GroupId(2)].into());
}

#[test]
fn what_a_name_shows_to_scram_does_not_tell_whether_there_is_such_a_user() {
    let before = with_users();
    let process = DecoySecret::new();
    let of_another = before.scram("nobody", &process).verifier;
    let mut bob = user(3, "bob", false);
    bob.password = Some(crate::KeptPassword::new("long enough").unwrap());
    let catalog = after(&before, [Change::PutUser(bob.clone())]);
    let shown = |catalog: &Catalog, name| catalog.scram(name, &process);

    let right = shown(&catalog, "bob");
    let kept = bob.password.as_ref().and_then(|it| it.scram()).unwrap();
    assert_eq!((&right.verifier, right.user), (kept, Some(UserId(3))));
    // A user without a password, an unknown name, and what is no name.
    for name in ["alice", "nobody", "editors", "a b"] {
        let decoy = shown(&catalog, name);
        assert_eq!((decoy.user, decoy.is_too_old), (None, false), "{name}");
        assert_eq!(decoy.verifier.iterations(), kept.iterations());
        let again = catalog.scram(name, &DecoySecret::new());
        assert_eq!(decoy.verifier, again.verifier, "{name}");
    }
    // As soon as there is a secret of the database's own, that of the process is nothing.
    assert_ne!(shown(&catalog, "nobody").verifier, of_another);
    let read = Catalog::of_entries(&catalog.entries().unwrap()).unwrap();
    assert_eq!(
        shown(&read, "nobody").verifier,
        shown(&catalog, "nobody").verifier
    );

    bob.is_locked = true;
    let locked = after(&catalog, [Change::PutUser(bob.clone())]);
    let shut = shown(&locked, "bob");
    assert_eq!(shut.user, None);
    assert_eq!(shut.verifier.salt(), kept.salt());
    assert_ne!(shut.verifier.stored_key(), kept.stored_key());
    assert!(!locked.lets_in(UserId(3)) && catalog.lets_in(UserId(3)));

    bob.is_locked = false;
    let hash = serde_json::to_string(bob.password.as_ref().unwrap().text()).unwrap();
    bob.password = Some(serde_json::from_str(&hash).unwrap());
    let old = after(&before, [Change::PutUser(bob)]);
    let shown = shown(&old, "bob");
    assert_eq!((shown.user, shown.is_too_old), (None, true));
    assert!(
        old.entries()
            .unwrap()
            .keys()
            .all(|(kind, _)| kind != DECOYS)
    );
}
