//! Stored tables through DataFusion.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, StringViewArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{SessionConfig, SessionContext};
use orrery_storage::table::{
    ColumnDefinition, ColumnId, ColumnType, DEFAULT_SCHEMA, DefinitionChange, PrimaryKey,
    RelationId, TableDefinition,
};
use orrery_storage::{CommitOptions, Database, Snapshot, WriterOptions};

use orrery_sql::catalog;

fn column(id: u32, name: &str, column_type: ColumnType) -> ColumnDefinition {
    ColumnDefinition {
        id: ColumnId(id),
        name: name.to_owned(),
        column_type,
        is_nullable: true,
        default: None,
        initial: None,
    }
}

fn items() -> TableDefinition {
    let text = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };
    let mut number = column(2, "number", ColumnType::Integer);
    number.is_nullable = false;
    TableDefinition {
        id: RelationId(1),
        schema: DEFAULT_SCHEMA.to_owned(),
        name: "items".to_owned(),
        columns: vec![column(1, "note", text), number],
        next_column: 3,
        primary_key: Some(PrimaryKey {
            name: "items_pkey".to_owned(),
            columns: vec![ColumnId(2)],
        }),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    }
}

async fn ask(snapshot: &Snapshot, text: &str) -> String {
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_default_catalog_and_schema("orrery", DEFAULT_SCHEMA);
    let context = SessionContext::new_with_config(config);
    context.register_catalog("orrery", catalog(snapshot.tables()));
    let batches = context.sql(text).await.unwrap().collect().await.unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

#[tokio::test]
async fn a_table_is_read_in_the_order_of_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::create_or_open(directory.path()).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut transaction = writer.begin().unwrap();
    transaction
        .define(DefinitionChange::CreateTable(items()))
        .unwrap();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from(vec![
            Some("third"),
            None,
            Some("second"),
        ])),
        Arc::new(Int32Array::from(vec![3, 1, 2])),
    ];
    transaction.insert_rows(RelationId(1), &columns).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap();
    let snapshot = database.snapshot();
    let answer = ask(&snapshot, "SELECT number, note FROM items ORDER BY number").await;
    assert_eq!(
        answer.lines().collect::<Vec<_>>(),
        [
            "+--------+--------+",
            "| number | note   |",
            "+--------+--------+",
            "| 1      |        |",
            "| 2      | second |",
            "| 3      | third  |",
            "+--------+--------+",
        ]
    );
    let plan = ask(
        &snapshot,
        "EXPLAIN SELECT number FROM items ORDER BY number",
    )
    .await;
    assert!(!plan.contains("SortExec"), "{plan}");
    assert!(
        plan.contains("ScanExec: table=items, columns=[number]"),
        "{plan}"
    );
    let answer = ask(&snapshot, "SELECT count(*) AS n FROM items").await;
    assert!(answer.contains("| 3 |"), "{answer}");
}
