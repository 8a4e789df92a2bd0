//! Tests of changed table definitions: a refused change leaves the table as it was.

use super::tables::{ModelRow, arrays, create, definition, end};
use super::updates::open;
use super::*;
use crate::table::*;

#[test]
fn an_index_that_the_memory_has_no_room_for_is_not_filled() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, writer) = open(directory.path());
    let mut without = definition(true);
    let index = without.indexes.remove(0);
    create(&writer, without.clone());
    let rows: Vec<ModelRow> = (0..100_000)
        .map(|number| ((number, "x".to_owned()), (None, String::new())))
        .collect();
    let mut transaction = writer.begin().unwrap();
    transaction
        .insert_rows(RelationId(1), &arrays(&rows))
        .unwrap();
    end(transaction);

    let with_index = TableDefinition {
        indexes: vec![index],
        ..without
    };
    let change = DefinitionChange::AlterTable(with_index);
    let mut transaction = writer.begin().unwrap();
    transaction.count_memory(|| Box::new(FixedMemory::new(2 << 20)));
    let refused = transaction.define(change.clone());
    assert!(
        matches!(refused, Err(Error::TransactionMemory { .. })),
        "{refused:?}"
    );
    let table = |transaction: &Transaction| {
        let table = transaction.tables().table(RelationId(1)).unwrap();
        (table.rows(), table.indexes().count())
    };
    assert_eq!(table(&transaction), (100_000, 0));
    drop(transaction);

    // Nor is one whose maker does not go on.
    let mut transaction = writer.begin().unwrap();
    let mut asked_bytes = Vec::new();
    let ended = transaction.define_while(change.clone(), |bytes| {
        asked_bytes.push(bytes);
        asked_bytes.len() < 3
    });
    assert!(matches!(ended, Err(Error::Rows { .. })), "{ended:?}");
    assert!(asked_bytes.is_sorted_by(|one, other| one < other));
    assert_eq!((asked_bytes.len(), table(&transaction)), (3, (100_000, 0)));
    transaction.define(change).unwrap();
    assert_eq!(table(&transaction), (100_000, 1));
}
