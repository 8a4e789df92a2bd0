//! Tests of checkpoints and compactions of tables: every change is written once, failures leave
//! nothing.

use super::kept_states::try_publish_empty;
use super::tables::{ModelRow, arrays, create, definition, rows};
use super::updates::{commit, open, options, quads};
use super::*;
use crate::files::io::FileSystem;
use crate::files::io::testing::{FailingFileSystem, Fault, RecordingFileSystem};
use crate::table::*;

const DIRECTORY: &str = "/db";

/// The table of the tests, under another number.
fn another(id: u32) -> TableDefinition {
    let mut another = definition(true);
    another.id = RelationId(id);
    another.name = format!("items{id}");
    another.indexes[0].id = RelationId(id + 1);
    another.indexes[0].name = format!("items{id}_amount");
    another
}

fn row(number: i32) -> ModelRow {
    (
        (number, "x".to_owned()),
        (Some(number.into()), "note".to_owned()),
    )
}

fn insert(writer: &Writer, table: u32, number: i32) -> Result<u64> {
    let mut transaction = writer.begin()?;
    transaction.insert_rows(RelationId(table), &arrays(&[row(number)]))?;
    transaction.commit(CommitOptions::default())?.wait()
}

/// Where the present manifest says that the changes of a table stand.
fn written(snapshot: &Snapshot, table: u32) -> Option<String> {
    let base = snapshot.manifest().present();
    let tables = match base.deltas.last() {
        Some(delta) => delta.tables.as_ref(),
        None => base.tables.as_ref(),
    };
    let mut tables = tables.unwrap().tables.iter();
    let table = tables.find(|entry| entry.definition.id == RelationId(table));
    let changes = table.unwrap().changes.as_ref();
    changes.map(|changes| changes.name.clone())
}

#[test]
fn a_checkpoint_writes_the_changes_of_those_tables_that_have_others() {
    let directory = tempfile::tempdir().unwrap();
    let (mut database, mut writer) = open(directory.path());
    create(&writer, definition(true));
    create(&writer, another(3));
    insert(&writer, 1, 1).unwrap();
    insert(&writer, 3, 1).unwrap();
    assert!(writer.checkpoint().unwrap());
    let first = [1, 3].map(|table| written(&database.snapshot(), table).unwrap());
    // The one changes, the other does not.
    insert(&writer, 3, 2).unwrap();
    assert!(writer.checkpoint().unwrap());
    let second = [1, 3].map(|table| written(&database.snapshot(), table).unwrap());
    assert_eq!(first[0], second[0]);
    assert_ne!(first[1], second[1]);
    // Who opens it knows, too; and commits of quads alone write none.
    drop((database, writer));
    (database, writer) = open(directory.path());
    commit(&writer, &[], &quads(0..3));
    let tables = Arc::clone(database.snapshot().tables());
    assert!(writer.checkpoint().unwrap());
    // Who keeps plans for these tables may keep them.
    assert!(Arc::ptr_eq(&tables, database.snapshot().tables()));
    let third = [1, 3].map(|table| written(&database.snapshot(), table).unwrap());
    assert_eq!(second, third);
    // Nor does a new base.
    commit(&writer, &quads(0..3), &[]);
    try_publish_empty(writer.begin_compaction().unwrap()).unwrap();
    let fourth = [1, 3].map(|table| written(&database.snapshot(), table).unwrap());
    assert_eq!(second, fourth);
    // What is in the table's files is no change any more.
    assert!(writer.compact_table(RelationId(1)).unwrap());
    commit(&writer, &[], &quads(0..3));
    assert!(writer.checkpoint().unwrap());
    assert_eq!(written(&database.snapshot(), 1), None);
    assert_eq!(written(&database.snapshot(), 3), Some(second[1].clone()));
    // States before, and one that is opened from files alone.
    drop((database, writer));
    let (database, _writer) = open(directory.path());
    let snapshot = database.snapshot();
    let table = |id| snapshot.tables().table(RelationId(id)).unwrap();
    assert_eq!(rows(table(1)), [row(1)]);
    assert_eq!(rows(table(3)), [row(1), row(2)]);
    let old = database.snapshot_at(At::Commit(4)).unwrap();
    assert_eq!(rows(old.tables().table(RelationId(3)).unwrap()), [row(1)]);
    assert!(is_whole(directory.path()));
}

/// What a database is made through in which everything is done that writes the changes of tables: a
/// checkpoint, a load, and a compaction beside which something is committed. Returns how many rows
/// are acknowledged.
fn write_all(writer: &Writer, acknowledged: &mut i32) -> Result<()> {
    let mut next = |writer: &Writer| {
        insert(writer, 1, *acknowledged + 1)?;
        *acknowledged += 1;
        Ok(())
    };
    next(writer)?;
    writer.checkpoint()?;
    next(writer)?;
    try_publish_empty(writer.begin_load()?)?;
    let compaction = writer.begin_compaction()?;
    next(writer)?;
    try_publish_empty(compaction)?;
    next(writer)
}

fn shared(disk: &RecordingFileSystem) -> Arc<dyn FileSystem> {
    Arc::new(disk.clone())
}

/// The directories of changes of tables on a disk that no manifest names.
fn unnamed(disk: &RecordingFileSystem, snapshot: &Snapshot) -> Vec<String> {
    let paths = disk.files();
    let of_database = paths.iter().filter_map(|path| {
        let name = path.strip_prefix(DIRECTORY).ok()?.iter().next()?;
        name.to_str()
    });
    let ours = of_database.filter(|name| name.starts_with("tables-"));
    let is_named = |name: &str| {
        snapshot
            .manifest()
            .directories()
            .any(|directory| directory == name)
    };
    ours.filter(|name| !is_named(name))
        .map(str::to_owned)
        .collect()
}

#[test]
fn new_bases_and_checkpoints_that_fail_leave_each_row_and_no_files() {
    let start = RecordingFileSystem::new();
    let database = Database::create_or_open_with(shared(&start), DIRECTORY).unwrap();
    let writer = Arc::new(database).open_writer(options()).unwrap();
    create(&writer, definition(true));
    drop(writer);
    for fault in [Fault::NoSpace, Fault::Io] {
        let mut failures = 0;
        for number in 0.. {
            let disk = start.copy();
            let failing = FailingFileSystem::over(&disk);
            let file_system: Arc<dyn FileSystem> = Arc::new(failing.clone());
            let database = Database::open_with(file_system, DIRECTORY).unwrap();
            let database = Arc::new(database);
            let writer = database.open_writer(options()).unwrap();
            let before = failing.calls();
            failing.fail_call(before + number, fault);
            let mut acknowledged = 0;
            let done = write_all(&writer, &mut acknowledged);
            let is_over = failing.calls() <= before + number;
            failures += u32::from(done.is_err());
            if done.is_err() && writer.check().is_ok() {
                assert_eq!(
                    unnamed(&disk, &database.snapshot()),
                    [""; 0],
                    "{fault:?} {number}"
                );
            }
            drop((writer, database));
            failing.heal();
            let damage = verify_with(&disk, Path::new(DIRECTORY), |_| {}).unwrap();
            assert!(damage.is_empty(), "{fault:?} {number}: {damage:?}");
            let database = Database::open_with(shared(&disk), DIRECTORY).unwrap();
            let snapshot = database.snapshot();
            let found = rows(snapshot.tables().table(RelationId(1)).unwrap());
            let is_right = |rows: i32| found == (1..=rows).map(row).collect::<Vec<_>>();
            // One that was not acknowledged may be there.
            assert!(
                is_right(acknowledged) || is_right(acknowledged + 1),
                "{fault:?} {number}: {found:?} of {acknowledged}"
            );
            if is_over {
                done.unwrap();
                break;
            }
        }
        assert!(failures > 50, "{failures}");
    }
}
