//! Tests of tables in transactions, log, checkpoints, compactions and backups, against a map.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, StringViewArray};
use arrow::datatypes::{Int32Type, Int64Type};

use super::updates::{commit, open, quads};
use super::*;
use crate::table::*;

/// number, name -> amount, note
pub(super) type Model = BTreeMap<(i32, String), (Option<i64>, String)>;
pub(super) type ModelRow = ((i32, String), (Option<i64>, String));

const TEXT: ColumnType = ColumnType::Text {
    length_max: None,
    is_padded: false,
};

fn column(id: u32, name: &str, column_type: ColumnType, is_nullable: bool) -> ColumnDefinition {
    ColumnDefinition {
        id: ColumnId(id),
        name: name.to_owned(),
        column_type,
        is_nullable,
        default: None,
        initial: None,
    }
}

pub(super) fn definition(has_key: bool) -> TableDefinition {
    TableDefinition {
        id: RelationId(1),
        schema: DEFAULT_SCHEMA.to_owned(),
        name: "items".to_owned(),
        columns: vec![
            column(1, "note", TEXT, false),
            column(2, "number", ColumnType::Integer, false),
            column(3, "amount", ColumnType::BigInt, true),
            column(4, "name", TEXT, false),
        ],
        next_column: 5,
        primary_key: has_key.then(|| PrimaryKey {
            name: "items_pkey".to_owned(),
            columns: vec![ColumnId(2), ColumnId(4)],
        }),
        indexes: vec![IndexDefinition {
            id: RelationId(2),
            name: "items_amount".to_owned(),
            columns: vec![ColumnId(3)],
            included: vec![ColumnId(1)],
            is_unique: false,
            is_constraint: false,
        }],
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    }
}

pub(super) fn arrays(rows: &[ModelRow]) -> Vec<ArrayRef> {
    let notes = rows.iter().map(|row| Some(row.1.1.as_str()));
    let names = rows.iter().map(|row| Some(row.0.1.as_str()));
    vec![
        Arc::new(notes.collect::<StringViewArray>()),
        Arc::new(rows.iter().map(|row| row.0.0).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|row| row.1.0).collect::<Int64Array>()),
        Arc::new(names.collect::<StringViewArray>()),
    ]
}

/// The rows in the order of the primary projection.
pub(super) fn rows(table: &TableState) -> Vec<ModelRow> {
    let primary = table.primary();
    let all: Vec<usize> = (0..primary.layout().columns.len()).collect();
    let columns = primary.read(primary.positions(), &all).unwrap();
    let of = |id: u32| &columns[primary.layout().position(ColumnId(id)).unwrap()];
    (0..columns[0].len())
        .map(|row| {
            let text = |id| of(id).as_string_view().value(row).to_owned();
            let amounts = of(3).as_primitive::<Int64Type>();
            let amount = amounts.is_valid(row).then(|| amounts.value(row));
            let number = of(2).as_primitive::<Int32Type>().value(row);
            ((number, text(4)), (amount, text(1)))
        })
        .collect()
}

/// Amount, number, name, note as the index has them.
fn index_rows(table: &TableState) -> Vec<(Option<i64>, i32, String, String)> {
    let (_, index) = table.indexes().next().unwrap();
    let columns = index.read(index.positions(), &[0, 1, 2, 3]).unwrap();
    let amounts = columns[0].as_primitive::<Int64Type>();
    (0..amounts.len())
        .map(|row| {
            (
                amounts.is_valid(row).then(|| amounts.value(row)),
                columns[1].as_primitive::<Int32Type>().value(row),
                columns[2].as_string_view().value(row).to_owned(),
                columns[3].as_string_view().value(row).to_owned(),
            )
        })
        .collect()
}

fn check(snapshot: &Snapshot, model: &Model) {
    let table = snapshot.tables().table(RelationId(1)).unwrap();
    assert_eq!(table.rows(), model.len() as u64);
    check_pieces(table);
    let expected: Vec<ModelRow> = model.clone().into_iter().collect();
    assert_eq!(rows(table), expected);
    let mut expected: Vec<_> = model
        .iter()
        .map(|((number, name), (amount, note))| (*amount, *number, name.clone(), note.clone()))
        .collect();
    // NULL is behind all values.
    expected.sort_by_key(|row| (row.0.is_none(), row.clone()));
    assert_eq!(index_rows(table), expected);
}

/// Pieces of a table are its rows, and none of them is large.
fn check_pieces(table: &TableState) {
    let numbers = |columns: &[ArrayRef]| -> Vec<i32> {
        let numbers = columns[0].as_primitive::<Int32Type>();
        numbers.values().to_vec()
    };
    let primary = table.primary();
    let wanted = [primary.layout().position(ColumnId(2)).unwrap()];
    let expected = numbers(&primary.read(primary.positions(), &wanted).unwrap());
    for rows_max in [1, 3, 1_000] {
        let mut pieces = primary.pieces(&wanted, rows_max);
        let mut found = Vec::new();
        while let Some(piece) = pieces.next_piece().unwrap() {
            let piece = numbers(&piece);
            assert!(piece.len() <= 2 * rows_max, "{} rows", piece.len());
            found.extend(piece);
        }
        assert_eq!(found, expected);
    }
}

/// Where the row with a key is.
fn place(table: &TableState, key: &(i32, String)) -> Option<RowPlace> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![key.0])),
        Arc::new(StringViewArray::from(vec![key.1.as_str()])),
    ];
    let mut keys = KeyRows::default();
    table
        .primary()
        .keys()
        .encode_rows(&columns, &mut keys)
        .unwrap();
    table.primary().locate(&keys).unwrap().pop().unwrap()
}

/// Writes a table anew with the rows of the model.
fn rewrite(
    transaction: &mut Transaction,
    definition: &TableDefinition,
    model: &Model,
) -> Result<u64> {
    let mut rewrite = transaction.rewrite_table(RelationId(1))?;
    let model: Vec<ModelRow> = model.clone().into_iter().collect();
    let columns = arrays(&model);
    for number in 0..rewrite.layouts().len() {
        let mut order: Vec<u32> = (0..model.len() as u32).collect();
        if number == 1 {
            // NULL is behind all values.
            order.sort_by_key(|&row| {
                let (key, (amount, _)) = &model[row as usize];
                (amount.is_none(), *amount, key.clone())
            });
        }
        let order = arrow::array::UInt32Array::from(order);
        let mut rows = rewrite.projection(number)?;
        let of_layout: Vec<ArrayRef> = rows
            .layout()
            .columns
            .iter()
            .map(|column| {
                let mut columns_of = definition.columns.iter();
                let place = columns_of.position(|of| of.id == column.id).unwrap();
                arrow::compute::take(&columns[place], &order, None).unwrap()
            })
            .collect();
        rows.push(&of_layout)?;
        rewrite.finish(rows)?;
    }
    transaction.put_rewritten(rewrite, 0)
}

/// Commits, and returns the number.
pub(super) fn end(transaction: Transaction) -> u64 {
    let pending = transaction.commit(CommitOptions::default());
    pending.unwrap().wait().unwrap()
}

pub(super) fn create(writer: &Writer, definition: TableDefinition) {
    let mut transaction = writer.begin().unwrap();
    transaction
        .define(DefinitionChange::CreateTable(definition))
        .unwrap();
    end(transaction);
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<ModelRow>),
    Delete(Vec<usize>),
    Undone(Vec<ModelRow>),
    Quads(u64),
    Truncate,
    /// Rows that the table has and others, to other files.
    Load(Vec<ModelRow>),
    Compact,
    Checkpoint,
    Reopen,
}

fn a_row() -> impl Strategy<Value = ModelRow> {
    let name = prop::sample::select(vec!["", "a", "ab", "b\0c", "long name of an item"]);
    (0..12i32, name, prop::option::of(0..5i64), "[a-c]{0,9}")
        .prop_map(|(number, name, amount, note)| ((number, name.to_owned()), (amount, note)))
}

fn a_step() -> impl Strategy<Value = Step> {
    let rows = || prop::collection::vec(a_row(), 0..12);
    prop_oneof![
        6 => rows().prop_map(Step::Insert),
        4 => prop::collection::vec(any::<usize>(), 1..6).prop_map(Step::Delete),
        1 => rows().prop_map(Step::Undone),
        1 => (0..100u64).prop_map(Step::Quads),
        1 => Just(Step::Truncate),
        2 => rows().prop_map(Step::Load),
        2 => Just(Step::Compact),
        2 => Just(Step::Checkpoint),
        2 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn tables_do_what_a_plain_map_does(steps in prop::collection::vec(a_step(), 1..20)) {
        let directory = tempfile::tempdir().unwrap();
        let (mut database, mut writer) = open(directory.path());
        create(&writer, definition(true));
        let mut model = Model::new();
        let mut states = Vec::new();
        for step in steps {
            match step {
                Step::Insert(rows) => {
                    let mut transaction = writer.begin().unwrap();
                    let mut after = model.clone();
                    let is_new = rows.iter().all(|(key, row)| after.insert(key.clone(), row.clone()).is_none());
                    match transaction.insert_rows(RelationId(1), &arrays(&rows)) {
                        Ok(inserted) => {
                            prop_assert!(is_new);
                            prop_assert_eq!(inserted, rows.len() as u64);
                            model = after;
                            end(transaction);
                        }
                        Err(Error::Duplicate { .. }) => prop_assert!(!is_new),
                        Err(error) => panic!("{error}"),
                    }
                }
                Step::Delete(numbers) => {
                    let mut transaction = writer.begin().unwrap();
                    let table = transaction.tables().table(RelationId(1)).unwrap().clone();
                    let keys: BTreeSet<_> = numbers.iter().filter_map(|number| {
                        model.keys().nth(number % model.len().max(1)).cloned()
                    }).collect();
                    let places: Vec<RowPlace> = keys.iter().map(|key| place(&table, key).unwrap()).collect();
                    prop_assert_eq!(transaction.delete_rows(RelationId(1), places).unwrap(), keys.len() as u64);
                    keys.iter().for_each(|key| { model.remove(key); });
                    end(transaction);
                }
                Step::Undone(rows) => {
                    let mut transaction = writer.begin().unwrap();
                    let savepoint = transaction.table_savepoint();
                    let _ = transaction.insert_rows(RelationId(1), &arrays(&rows));
                    transaction.truncate(RelationId(1)).unwrap();
                    transaction.undo_to(&savepoint);
                    prop_assert_eq!(transaction.tables().table(RelationId(1)).unwrap().rows(), model.len() as u64);
                    end(transaction);
                }
                Step::Quads(number) => {
                    commit(&writer, &[], &quads(number..number + 3));
                }
                Step::Truncate => {
                    let mut transaction = writer.begin().unwrap();
                    prop_assert_eq!(transaction.truncate(RelationId(1)).unwrap(), model.len() as u64);
                    model.clear();
                    end(transaction);
                }
                Step::Load(rows) => {
                    let mut transaction = writer.begin().unwrap();
                    model.extend(rows);
                    let written = rewrite(&mut transaction, &definition(true), &model).unwrap();
                    prop_assert_eq!(written, model.len() as u64);
                    end(transaction);
                }
                Step::Compact => {
                    writer.compact_table(RelationId(1)).unwrap();
                    let snapshot = database.snapshot();
                    let table = snapshot.tables().table(RelationId(1)).unwrap();
                    prop_assert!(table.projections().all(|projection| projection.changes().is_empty()));
                }
                Step::Checkpoint => {
                    writer.checkpoint().unwrap();
                }
                Step::Reopen => {
                    drop(writer);
                    drop(database);
                    (database, writer) = open(directory.path());
                }
            }
            check(&database.snapshot(), &model);
            states.push((database.snapshot().commit(), model.clone()));
        }
        let verified = verify(directory.path(), |_| {}).unwrap();
        prop_assert!(verified.is_empty(), "{:?}", verified);
        // Old states are as they were.
        for (commit, model) in states {
            check(&database.snapshot_at(At::Commit(commit)).unwrap(), &model);
        }
    }
}

#[test]
fn one_commit_has_rows_and_quads_and_a_dropped_transaction_neither() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    create(&writer, definition(true));
    let row = |number: i32| ((number, "x".to_owned()), (Some(1), "note".to_owned()));
    for is_committed in [false, true] {
        let mut transaction = writer.begin().unwrap();
        transaction
            .insert_rows(RelationId(1), &arrays(&[row(7), row(3)]))
            .unwrap();
        let id = transaction.intern(&iri("s")).unwrap();
        transaction
            .insert(&mut vec![[id, id, id, TermId::DEFAULT_GRAPH]])
            .unwrap();
        if is_committed {
            assert_eq!(end(transaction), 2);
        }
        let expected = if is_committed { 2 } else { 0 };
        let snapshot = database.snapshot();
        assert_eq!(
            snapshot.tables().table(RelationId(1)).unwrap().rows(),
            expected
        );
        assert_eq!(snapshot.quad_count(), expected / 2);
    }
}

#[test]
fn a_table_without_a_key_takes_equal_rows_and_keeps_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    create(&writer, definition(false));
    let row = ((1, "x".to_owned()), (None, "note".to_owned()));
    let other = ((0, "y".to_owned()), (Some(4), "other".to_owned()));
    for part in [vec![row.clone(), other.clone()], vec![row.clone()]] {
        let mut transaction = writer.begin().unwrap();
        transaction
            .insert_rows(RelationId(1), &arrays(&part))
            .unwrap();
        end(transaction);
    }
    writer.checkpoint().unwrap();
    drop(writer);
    drop(database);
    let (database, _writer) = open(directory.path());
    let snapshot = database.snapshot();
    let table = snapshot.tables().table(RelationId(1)).unwrap();
    assert_eq!(rows(table), [row.clone(), other, row]);
    assert_eq!(table.next_row_number(), 3);
}

#[test]
fn rows_that_may_not_be_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, writer) = open(directory.path());
    let mut unique = definition(true);
    unique.indexes[0].is_unique = true;
    unique.columns[2].is_nullable = true;
    create(&writer, unique);
    let mut transaction = writer.begin().unwrap();
    let row = |number: i32, amount| ((number, "x".to_owned()), (amount, String::new()));
    let rows = [row(1, Some(5)), row(2, None), row(3, None)];
    transaction
        .insert_rows(RelationId(1), &arrays(&rows))
        .unwrap();
    let error = transaction
        .insert_rows(RelationId(1), &arrays(&[row(4, Some(5))]))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"items\" has a row with (amount)=(5) already, and \"items_amount\" allows one"
    );
    let error = transaction
        .insert_rows(RelationId(1), &arrays(&[row(1, None)]))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"items\" has a row with (number, name)=(1, x) already, and \"items_pkey\" allows one"
    );
    let mut columns = arrays(&[row(9, None)]);
    columns[0] = Arc::new(StringViewArray::from(vec![None::<&str>]));
    let error = transaction
        .insert_rows(RelationId(1), &columns)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "column \"note\" of \"items\" may not be NULL"
    );
    assert_eq!(transaction.tables().table(RelationId(1)).unwrap().rows(), 3);
}

/// The directories of tables in a database's.
fn table_directories(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("table-")).collect();
    names.sort();
    names
}

#[test]
fn a_load_that_is_not_committed_leaves_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    create(&writer, definition(true));
    let model = Model::from([((1, "x".to_owned()), (Some(2), "note".to_owned()))]);
    let mut transaction = writer.begin().unwrap();
    rewrite(&mut transaction, &definition(true), &model).unwrap();
    let savepoint = transaction.table_savepoint();
    rewrite(&mut transaction, &definition(true), &Model::new()).unwrap();
    transaction.undo_to(&savepoint);
    assert_eq!(table_directories(directory.path()).len(), 2);
    end(transaction);
    // What was undone is gone.
    assert_eq!(table_directories(directory.path()).len(), 1);
    let mut transaction = writer.begin().unwrap();
    rewrite(&mut transaction, &definition(true), &Model::new()).unwrap();
    drop(transaction);
    assert_eq!(table_directories(directory.path()).len(), 1);
    check(&database.snapshot(), &model);
}

#[test]
fn what_was_written_while_a_table_is_compacted_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    create(&writer, definition(true));
    let row = |number: i32| ((number, "x".to_owned()), (Some(1), "note".to_owned()));
    let mut model = Model::new();
    let writes = |model: &mut Model, numbers: std::ops::Range<i32>| {
        for number in numbers {
            let mut transaction = writer.begin().unwrap();
            transaction
                .insert_rows(RelationId(1), &arrays(&[row(number)]))
                .unwrap();
            end(transaction);
            let (key, value) = row(number);
            model.insert(key, value);
        }
    };
    writes(&mut model, 0..20);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| {
            let mut compacted = 0;
            for _ in 0..20 {
                compacted += u64::from(writer.compact_table(RelationId(1)).unwrap());
            }
            compacted
        });
        writes(&mut model, 20..120);
        assert!(compacting.join().unwrap() > 0);
    });
    check(&database.snapshot(), &model);
    drop((database, writer));
    let (database, _writer) = open(directory.path());
    check(&database.snapshot(), &model);
    assert!(verify(directory.path(), |_| {}).unwrap().is_empty());
}

#[test]
fn a_table_that_changes_faster_than_it_is_written_makes_writers_wait() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    create(&writer, definition(true));
    let row = |number: i32| ((number, "x".to_owned()), (Some(1), "note".to_owned()));
    let mut model = Model::new();
    let insert = |model: &mut Model, number: i32| {
        let mut transaction = writer.begin().unwrap();
        transaction
            .insert_rows(RelationId(1), &arrays(&[row(number)]))
            .unwrap();
        end(transaction);
        let (key, value) = row(number);
        model.insert(key, value);
    };
    insert(&mut model, 0);
    let asked = std::cell::RefCell::new((&mut model, 0));
    // Somebody writes during both attempts beside others, of which nothing may be noted; nobody
    // could during the third.
    let write_beside = || {
        let (model, number) = &mut *asked.borrow_mut();
        *number += 1;
        if *number <= 2 {
            insert(model, *number);
        }
        false
    };
    let is_done = writer.compact_noting(RelationId(1), 0, &write_beside);
    assert!(is_done.unwrap());
    assert!(asked.into_inner().1 > 2);
    let snapshot = database.snapshot();
    check(&snapshot, &model);
    let table = snapshot.tables().table(RelationId(1)).unwrap();
    assert!(!table.has_changes());
    // One that is cancelled leaves nothing.
    insert(&mut model, 1_000);
    let directories = table_directories(directory.path());
    let is_done = writer.compact_table_unless(RelationId(1), &|| true);
    assert!(!is_done.unwrap());
    assert_eq!(table_directories(directory.path()), directories);
    check(&database.snapshot(), &model);
}

#[test]
fn rows_of_a_load_that_may_not_be_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, writer) = open(directory.path());
    let mut unique = definition(true);
    unique.indexes[0].is_unique = true;
    create(&writer, unique.clone());
    let model: Model = (0..3)
        .map(|number| {
            (
                (number, "x".to_owned()),
                (Some(number.into()).filter(|it| *it > 0), String::new()),
            )
        })
        .collect();
    let mut transaction = writer.begin().unwrap();
    rewrite(&mut transaction, &unique, &model).unwrap();
    let mut twice = model.clone();
    twice.insert((7, "y".to_owned()), (Some(2), String::new()));
    let error = rewrite(&mut transaction, &unique, &twice).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"items\" has a row with (amount)=(2) already, and \"items_amount\" allows one"
    );
    let rewriting = transaction.rewrite_table(RelationId(1)).unwrap();
    let mut rows = rewriting.projection(0).unwrap();
    let row = ((1, "x".to_owned()), (None, String::new()));
    let columns = arrays(&[row.clone(), row]);
    let columns: Vec<ArrayRef> = [1, 3, 0, 2]
        .map(|place: usize| columns[place].clone())
        .into();
    assert_eq!(
        rows.push(&columns).unwrap_err().to_string(),
        "\"items\" has a row with (number, name)=(1, x) already, and \"items_pkey\" allows one"
    );
    drop(rows);
    let unfinished = transaction.put_rewritten(rewriting, 0).unwrap_err();
    assert_eq!(
        unfinished.to_string(),
        "rows of a table cannot be changed: not all projections of items were written"
    );
    assert_eq!(transaction.tables().table(RelationId(1)).unwrap().rows(), 3);
}

/// A table with a file, redefined in steps, each a commit; what it reads after each, before and
/// after it is opened anew.
fn redefine(
    directory: &Path,
    steps: &[&dyn Fn(&mut TableDefinition)],
    mut see: impl FnMut(usize, &TableState),
) {
    let (mut database, mut writer) = open(directory);
    create(&writer, definition(true));
    let model: Model = (0..10)
        .map(|number| ((number, "x".to_owned()), (Some(1), "note".to_owned())))
        .collect();
    let mut transaction = writer.begin().unwrap();
    rewrite(&mut transaction, &definition(true), &model).unwrap();
    end(transaction);
    let mut redefined = definition(true);
    for (number, step) in steps.iter().enumerate() {
        step(&mut redefined);
        let mut transaction = writer.begin().unwrap();
        let change = DefinitionChange::AlterTable(redefined.clone());
        transaction.define(change).unwrap();
        end(transaction);
        for is_checkpointed in [false, true] {
            see(
                number,
                database.snapshot().tables().table(RelationId(1)).unwrap(),
            );
            if is_checkpointed {
                writer.checkpoint().unwrap();
            }
            drop(writer);
            drop(database);
            (database, writer) = open(directory);
            see(
                number,
                database.snapshot().tables().table(RelationId(1)).unwrap(),
            );
            let verified = verify(directory, |_| {}).unwrap();
            assert!(verified.is_empty(), "{verified:?}");
        }
    }
    writer.compact_table(RelationId(1)).unwrap();
    let last = steps.len() - 1;
    see(
        last,
        database.snapshot().tables().table(RelationId(1)).unwrap(),
    );
}

#[test]
fn columns_that_were_added_keep_their_first_value_when_others_come() {
    let directory = tempfile::tempdir().unwrap();
    let added = |id: u32, name: &'static str| {
        move |table: &mut TableDefinition| {
            let mut new = column(id, name, ColumnType::BigInt, true);
            // The row of the number 5 alone: no NULL, and 5 in zigzag.
            new.initial = Some("000a".to_owned());
            table.columns.push(new);
            table.next_column = id + 1;
        }
    };
    let steps: [&dyn Fn(&mut TableDefinition); 2] = [&added(5, "five"), &added(6, "other")];
    redefine(directory.path(), &steps, |step, table| {
        let primary = table.primary();
        for id in 5..=5 + step as u32 {
            let place = primary.layout().position(ColumnId(id)).unwrap();
            let read = primary.read(primary.positions(), &[place]).unwrap();
            let values = read[0].as_primitive::<Int64Type>();
            assert_eq!(values.null_count(), 0, "column {id} after {step}");
            assert!(values.values().iter().all(|value| *value == 5));
            assert_eq!(values.len(), 10);
        }
    });
}

#[test]
fn an_index_that_is_made_anew_forgets_the_file_that_it_had() {
    let directory = tempfile::tempdir().unwrap();
    let steps: [&dyn Fn(&mut TableDefinition); 2] = [
        // A column of its key, and one that it includes.
        &|table| table.columns[2].is_nullable = false,
        &|table| table.columns[0].is_nullable = true,
    ];
    redefine(directory.path(), &steps, |step, table| {
        let rows = table.projections().map(Projection::rows);
        assert_eq!(Vec::from_iter(rows), [10, 10], "after {step}");
        assert_eq!(index_rows(table).len(), 10);
    });
}

#[test]
fn many_new_rows_at_one_place_are_found_by_their_keys() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    let mut unique = definition(true);
    unique.indexes[0].is_unique = true;
    create(&writer, unique);
    // Before there is a file, all of them are at its end.
    let rows: Vec<ModelRow> = (0..3_000)
        .map(|number| {
            (
                (number, "x".to_owned()),
                (Some(number.into()), String::new()),
            )
        })
        .collect();
    for part in rows.chunks(1_000) {
        let mut transaction = writer.begin().unwrap();
        transaction
            .insert_rows(RelationId(1), &arrays(part))
            .unwrap();
        end(transaction);
    }
    let snapshot = database.snapshot();
    let table = snapshot.tables().table(RelationId(1)).unwrap();
    let (_, index) = table.indexes().next().unwrap();
    for amount in [0i64, 1, 1_500, 2_999, 3_000] {
        let mut keys = KeyRows::default();
        let column: ArrayRef = Arc::new(Int64Array::from(vec![amount]));
        KeyEncoder::new(&index.layout().key()[..1])
            .encode_rows(&[column], &mut keys)
            .unwrap();
        let found = index.locate_prefix(keys.get(0)).unwrap();
        assert_eq!(found.len(), usize::from(amount < 3_000), "{amount}");
    }
}

#[test]
fn definitions_that_no_projection_can_be_made_of_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    create(&writer, definition(true));
    let mut transaction = writer.begin().unwrap();
    transaction
        .insert_rows(
            RelationId(1),
            &arrays(&[((1, "x".to_owned()), (None, String::new()))]),
        )
        .unwrap();
    let mistakes: [&dyn Fn(&mut TableDefinition); 10] = [
        &|table| table.columns[1].id = ColumnId(1),
        &|table| table.columns[1].id = ROW_NUMBER,
        &|table| table.next_column = 4,
        &|table| table.columns[2].initial = Some("no digits".to_owned()),
        &|table| {
            table
                .primary_key
                .as_mut()
                .unwrap()
                .columns
                .push(ColumnId(9))
        },
        &|table| table.primary_key.as_mut().unwrap().columns.clear(),
        &|table| table.indexes[0].columns.push(ColumnId(3)),
        &|table| table.indexes[0].included.push(ColumnId(9)),
        &|table| table.indexes[0].id = RelationId(u32::MAX),
        // The rows stand by the old one.
        &|table| table.primary_key = None,
    ];
    for (number, mistake) in mistakes.iter().enumerate() {
        let mut wrong = definition(true);
        mistake(&mut wrong);
        let change = DefinitionChange::AlterTable(wrong);
        let error = transaction.define(change).unwrap_err();
        assert!(matches!(error, Error::Rows { .. }), "{number}: {error}");
    }
    end(transaction);
    let snapshot = database.snapshot();
    assert_eq!(snapshot.tables().table(RelationId(1)).unwrap().rows(), 1);
}

#[test]
fn what_the_memory_has_no_room_for_is_refused_before_it_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, writer) = open(directory.path());
    create(&writer, definition(true));
    let rows: Vec<ModelRow> = (0..200_000)
        .map(|number| ((number, "x".to_owned()), (None, String::new())))
        .collect();
    let arrays = arrays(&rows);
    // What narrow rows take: two projections, with an entry, a key and a row in each.
    let mut transaction = writer.begin().unwrap();
    transaction.count_memory(|| Box::new(FixedMemory::new(24 << 20)));
    let refused = transaction.insert_rows(RelationId(1), &arrays);
    assert!(
        matches!(refused, Err(Error::TransactionMemory { needed_bytes, .. }) if needed_bytes > 30 << 20),
        "{refused:?}"
    );
    assert_eq!(transaction.tables().table(RelationId(1)).unwrap().rows(), 0);
}

#[test]
fn a_text_that_is_no_key_is_counted_as_often_as_it_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, writer) = open(directory.path());
    create(&writer, definition(true));
    let note = "x".repeat(1 << 20);
    let rows: Vec<ModelRow> = (0..20)
        .map(|number| ((number, String::new()), (None, note.clone())))
        .collect();
    // Once for the log, and in each of two projections.
    let mut transaction = writer.begin().unwrap();
    transaction.count_memory(|| Box::new(FixedMemory::new(64 << 20)));
    let inserted = transaction.insert_rows(RelationId(1), &arrays(&rows));
    assert_eq!(inserted.unwrap(), 20);
}
