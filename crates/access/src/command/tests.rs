use super::*;

const NOW: u64 = 1_000;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn command(json: &str) -> Command {
    serde_json::from_str(json).unwrap()
}

fn applied(catalog: &Catalog, json: &str) -> (Catalog, Given) {
    let command = command(json);
    let again: Command = serde_json::from_str(&serde_json::to_string(&command).unwrap()).unwrap();
    assert_eq!(again, command);
    command.apply(catalog, NOW).unwrap()
}

/// An administrator `root`, and `ann` in the group `editors`.
fn some() -> Catalog {
    [
        r#"{"do":"add_user","user":"root","password":"made","administrator":true}"#,
        r#"{"do":"add_group","group":"editors"}"#,
        r#"{"do":"add_user","user":"ann","password":{"given":"long enough"},"groups":["editors"]}"#,
    ]
    .iter()
    .fold(Catalog::default(), |catalog, json| {
        applied(&catalog, json).0
    })
}

fn id(catalog: &Catalog, of: &str) -> UserId {
    catalog.user_named(&name(of)).unwrap().id
}

#[test]
fn users_come_change_and_go() {
    let first = command(r#"{"do":"add_user","user":"ann","password":"none"}"#);
    assert_eq!(
        first.apply(&Catalog::default(), NOW),
        Err(Error::NoAdministrator)
    );
    let (catalog, given) = applied(
        &some(),
        r#"{"do":"set_user","user":"ann","password":"made","locked":true}"#,
    );
    let ann = catalog.user_named(&name("ann")).unwrap();
    let password = given.password.unwrap();
    assert!(ann.password.as_ref().unwrap().is(&password) && ann.is_locked);
    let (catalog, given) = applied(
        &catalog,
        r#"{"do":"set_user","user":"ann","password":"none"}"#,
    );
    let ann = catalog.user_named(&name("ann")).unwrap();
    assert!(ann.password.is_none() && ann.is_locked && given == Given::default());
    let (catalog, _) = applied(&catalog, r#"{"do":"remove_user","user":"ann"}"#);
    assert!(catalog.user_named(&name("ann")).is_err());
    for (json, message) in [
        (
            r#"{"do":"remove_user","user":"root"}"#,
            "`root` is the last administrator; make another one first",
        ),
        (
            r#"{"do":"set_user","user":"root","locked":true}"#,
            "`root` is the last administrator; make another one first",
        ),
        (
            r#"{"do":"set_user","user":"ann"}"#,
            "there is no user `ann`",
        ),
        (
            r#"{"do":"add_user","user":"editors","password":"none"}"#,
            "`editors` is there already; users and groups share their names",
        ),
        (
            r#"{"do":"add_user","user":"bob","password":{"given":"short"}}"#,
            "not a password: it has 8 to 1024 bytes",
        ),
        (
            r#"{"do":"add_user","user":"bob","password":"none","groups":["nobodies"]}"#,
            "there is no group `nobodies`",
        ),
    ] {
        let error = command(json).apply(&catalog, NOW).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn groups_have_members() {
    let catalog = some();
    let members = |catalog: &Catalog| crate::Listing::of(catalog).groups[0].users.clone();
    assert_eq!(members(&catalog), [name("ann")]);
    let (catalog, _) = applied(
        &catalog,
        r#"{"do":"join","group":"editors","users":["root","ann"]}"#,
    );
    assert_eq!(members(&catalog), [name("root"), name("ann")]);
    let (catalog, _) = applied(
        &catalog,
        r#"{"do":"leave","group":"editors","users":["ann"]}"#,
    );
    assert_eq!(members(&catalog), [name("root")]);
    let (catalog, _) = applied(&catalog, r#"{"do":"remove_group","group":"editors"}"#);
    assert!(crate::Listing::of(&catalog).groups.is_empty());
}

#[test]
fn keys_come_and_go() {
    let (catalog, given) = applied(
        &some(),
        r#"{"do":"add_key","user":"ann","note":"nightly","ends":2000}"#,
    );
    let text = given.key.unwrap();
    assert_eq!(catalog.user_of_key(&text, 1_999).unwrap().name, name("ann"));
    assert!(catalog.user_of_key(&text, 2_000).is_none());
    let listed = crate::Listing::of(&catalog).keys;
    assert_eq!((listed.len(), listed[0].note.as_str()), (1, "nightly"));
    assert!(!serde_json::to_string(&listed).unwrap().contains(&text));
    let key = &listed[0].key;
    let remove = Command::RemoveKey { key: key.clone() };
    assert!(remove.is_allowed(&catalog, id(&catalog, "ann")));
    let (catalog, _) = remove.apply(&catalog, NOW).unwrap();
    assert!(catalog.user_of_key(&text, NOW).is_none());
    let past = command(r#"{"do":"add_key","user":"ann","ends":1000}"#);
    assert!(past.apply(&catalog, NOW).is_err());
}

#[test]
fn rules_come_once_and_go() {
    let grant =
        r#"{"do":"grant","to":{"group":"editors"},"right":"write","on":{"graphs_below":"x:a/"}}"#;
    let (catalog, given) = applied(&some(), grant);
    let (again, same) = applied(&catalog, grant);
    assert_eq!((&again, same.rule), (&catalog, given.rule));
    let listed = crate::Listing::of(&catalog).rules;
    assert_eq!(listed[0].to, Whom::Group(name("editors")));
    assert_eq!(Some(listed[0].rule), given.rule);
    assert_eq!(
        command(grant).summary(),
        "grant write on graphs below <x:a/> to group editors"
    );
    let revoke = Command::Revoke {
        rule: given.rule.unwrap(),
    };
    let (catalog, _) = revoke.apply(&catalog, NOW).unwrap();
    assert!(crate::Listing::of(&catalog).rules.is_empty());
    assert!(revoke.apply(&catalog, NOW).is_err());
    for bad in [
        r#"{"do":"grant","to":"everybody","right":"read","on":"all_graphs"}"#,
        r#"{"do":"grant","to":"anyone","right":"see","on":"all_graphs"}"#,
        r#"{"do":"grant","to":"anyone","right":"read","on":{"graphs":"x:a"}}"#,
        r#"{"do":"grant","to":"anyone","right":"read","on":"all_graphs","more":1}"#,
    ] {
        assert!(serde_json::from_str::<Command>(bad).is_err(), "{bad}");
    }
    let bad = command(r#"{"do":"grant","to":"anyone","right":"read","on":{"graph":"no iri"}}"#);
    assert!(bad.apply(&catalog, NOW).is_err());
}

#[test]
fn others_than_administrators_grant_what_they_administer() {
    let (catalog, given) = applied(
        &some(),
        r#"{"do":"grant","to":{"user":"ann"},"right":"administer","on":{"graphs_below":"x:a/"}}"#,
    );
    let (root, ann) = (id(&catalog, "root"), id(&catalog, "ann"));
    let may = |user, json: &str| command(json).is_allowed(&catalog, user);
    for (json, is_anns) in [
        (
            r#"{"do":"grant","to":"anyone","right":"read","on":{"graph":"x:a/b"}}"#,
            true,
        ),
        (
            r#"{"do":"grant","to":"anyone","right":"read","on":{"graphs_below":"x:a/b"}}"#,
            true,
        ),
        (
            r#"{"do":"grant","to":"anyone","right":"read","on":{"graph":"x:a"}}"#,
            false,
        ),
        (
            r#"{"do":"grant","to":"anyone","right":"read","on":"all_graphs"}"#,
            false,
        ),
        (r#"{"do":"add_key","user":"ann"}"#, true),
        (r#"{"do":"add_key","user":"root"}"#, false),
        (
            r#"{"do":"set_user","user":"ann","administrator":true}"#,
            false,
        ),
        (r#"{"do":"join","group":"editors","users":["ann"]}"#, false),
    ] {
        assert!(may(root, json), "{json}");
        assert_eq!(may(ann, json), is_anns, "{json}");
    }
    let revoke = Command::Revoke {
        rule: given.rule.unwrap(),
    };
    assert!(revoke.is_allowed(&catalog, ann));
    assert!(!Command::Revoke { rule: 9_999 }.is_allowed(&catalog, ann));
}
