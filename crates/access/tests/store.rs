//! Tests of the catalog in a database: commits, checkpoints, compactions, reopening and visibility.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use orrery_access::{
    ApiKey, Catalog, Change, Group, GroupId, KeptPassword, Name, Right, Rule, Subject, Target,
    User, UserId, read, write,
};
use orrery_storage::table::TableState;
use orrery_storage::{Asker, CommitOptions, Database, ReadScope, Writer, WriterOptions};

fn open(directory: &Path) -> (Arc<Database>, Writer) {
    let database = Arc::new(Database::create_or_open(directory).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    (database, writer)
}

fn keep(writer: &Writer, catalog: &Catalog) -> u64 {
    let mut transaction = writer.begin().unwrap();
    write(&mut transaction, catalog).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap()
}

fn kept(database: &Database) -> Catalog {
    read(database.snapshot().tables()).unwrap()
}

fn user(id: u64, name: &str, is_administrator: bool) -> User {
    User {
        id: UserId(id),
        name: Name::new(name).unwrap(),
        password: Some(KeptPassword::new("long enough").unwrap()),
        is_administrator,
        is_locked: false,
        identities: BTreeSet::new(),
        groups: BTreeSet::new(),
    }
}

fn some_catalog() -> Catalog {
    let group = Group {
        id: GroupId(2),
        name: Name::new("editors").unwrap(),
        identities: BTreeSet::new(),
    };
    let mut bob = user(3, "bob", false);
    bob.groups.insert(group.id);
    let rule = Rule {
        subject: Subject::Group(group.id),
        right: Right::Write,
        target: Target::GraphsBelow("http://example.org/".to_owned()),
    };
    let changes = [
        Change::PutUser(user(1, "alice", true)),
        Change::PutGroup(group),
        Change::PutUser(bob),
        Change::PutKey(ApiKey::new(UserId(3), "load", 1, Some(9)).0),
        Change::PutRule(4, rule),
    ];
    let all = changes.into_iter();
    all.fold(Catalog::default(), |all, change| all.after(change).unwrap())
}

#[test]
fn a_catalog_comes_back_from_the_log_from_checkpoints_and_from_files() {
    let directory = tempfile::tempdir().unwrap();
    let catalog = some_catalog();
    {
        let (database, writer) = open(directory.path());
        assert!(kept(&database).is_empty());
        keep(&writer, &catalog);
        assert_eq!(kept(&database), catalog);
        // Nothing that is different is nothing to write.
        let tables = Arc::clone(database.snapshot().tables());
        keep(&writer, &catalog);
        let rows = |state: &TableState| (state.rows(), state.changes());
        let of =
            |tables: &orrery_storage::table::Tables| rows(tables.system_table("access").unwrap());
        assert_eq!(of(&tables), of(database.snapshot().tables()));
    }
    let without_bob = catalog.after(Change::DropUser(UserId(3))).unwrap();
    {
        let (database, writer) = open(directory.path());
        assert_eq!(kept(&database), catalog);
        assert!(writer.checkpoint().unwrap());
        let table = database
            .snapshot()
            .tables()
            .system_table("access")
            .unwrap()
            .definition()
            .id;
        assert!(writer.compact_table(table).unwrap());
        assert_eq!(kept(&database), catalog);
        keep(&writer, &without_bob);
        assert_eq!(kept(&database), without_bob);
    }
    let (database, _writer) = open(directory.path());
    assert_eq!(kept(&database), without_bob);
    // A number is not given twice, though nobody has it any more.
    assert_eq!(kept(&database).next_number(), catalog.next_number());
}

#[test]
fn nobody_sees_it_who_does_not_ask_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    let before = database.snapshot().commit();
    keep(&writer, &some_catalog());
    let snapshot = database.snapshot();
    let tables = snapshot.tables();
    assert_eq!(tables.tables().count(), 0);
    assert!(tables.table_named("", "access").is_none());
    assert_eq!(tables.schemas().collect::<Vec<_>>(), ["public"]);
    let scope = ReadScope::all_graphs(Asker::Process);
    let mut told = 0;
    let seen = database.changes_with_tables(&scope, before, |changes| {
        changes.tables(|_| {
            told += 1;
            Ok(())
        })
    });
    seen.unwrap();
    assert_eq!(told, 0);
}
