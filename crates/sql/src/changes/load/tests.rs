//! Tests of bulk loads against a map: any order of rows, over any existing rows.

use std::collections::BTreeMap;

use datafusion::arrow::array::{AsArray, Int32Array, StringViewArray};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::prelude::SessionContext;
use orrery_runtime::{Runtime, RuntimeOptions};
use orrery_storage::table::{
    ColumnDefinition, ColumnId, ColumnType, DefinitionChange, IndexDefinition, PrimaryKey,
    TableDefinition,
};
use orrery_storage::{CommitOptions, Database, WriterOptions};

use super::*;

const TABLE: RelationId = RelationId(1);

fn definition(has_key: bool) -> TableDefinition {
    let column = |id: u32, name: &str, column_type, is_nullable| ColumnDefinition {
        id: ColumnId(id),
        name: name.to_owned(),
        column_type,
        is_nullable,
        default: None,
        initial: None,
    };
    let text = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };
    TableDefinition {
        id: TABLE,
        schema: "public".to_owned(),
        name: "items".to_owned(),
        columns: vec![
            column(1, "name", text, true),
            column(2, "number", ColumnType::Integer, false),
        ],
        next_column: 3,
        primary_key: has_key.then(|| PrimaryKey {
            name: "items_pkey".to_owned(),
            columns: vec![ColumnId(2)],
        }),
        indexes: vec![IndexDefinition {
            id: RelationId(2),
            name: "items_name".to_owned(),
            columns: vec![ColumnId(1)],
            included: Vec::new(),
            is_unique: false,
            is_constraint: false,
        }],
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    }
}

/// Few, so that orders go across batches.
const BATCH_ROWS: usize = 7;

type Row = (i32, Option<String>);

/// A plan with these rows, in so many partitions. Columns are named by their numbers.
fn plan(rows: &[Row], partitions: usize) -> Arc<dyn ExecutionPlan> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("1", datafusion::arrow::datatypes::DataType::Utf8View, true),
        Field::new("2", datafusion::arrow::datatypes::DataType::Int32, true),
    ]));
    let parts: Vec<Vec<RecordBatch>> = rows
        .chunks(rows.len().div_ceil(partitions).max(1))
        .map(|rows| {
            let batches = rows.chunks(BATCH_ROWS).map(|rows| {
                let names = rows.iter().map(|row| row.1.as_deref());
                let numbers = rows.iter().map(|row| row.0);
                let columns: Vec<ArrayRef> = vec![
                    Arc::new(names.collect::<StringViewArray>()),
                    Arc::new(numbers.collect::<Int32Array>()),
                ];
                RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
            });
            batches.collect()
        })
        .collect();
    MemorySourceConfig::try_new_exec(&parts, schema, None).unwrap()
}

async fn load_rows(transaction: &mut Transaction, rows: &[Row]) -> Result<u64> {
    load_with(&SessionContext::new().task_ctx(), transaction, rows).await
}

async fn load_with(
    task: &Arc<TaskContext>,
    transaction: &mut Transaction,
    rows: &[Row],
) -> Result<u64> {
    let plan = |is_one: bool| {
        let plan = plan(rows, if is_one { 1 } else { 3 });
        async { Ok(plan) }
    };
    load(transaction, TABLE, plan, task).await
}

/// Numbers and names of a table in its order, and the numbers in the order of its index.
fn content(tables: &orrery_storage::table::Tables) -> (Vec<Row>, Vec<i32>) {
    let table = tables.table(TABLE).unwrap();
    let read = |projection: &Projection| -> Vec<Row> {
        let places = [2, 1].map(|id| projection.layout().position(ColumnId(id)).unwrap());
        let all: Vec<usize> = (0..projection.layout().columns.len()).collect();
        let columns = projection.read(projection.positions(), &all).unwrap();
        let numbers = columns[places[0]].as_primitive::<Int32Type>();
        let names = columns[places[1]].as_string_view();
        let names = names.iter().map(|name| name.map(str::to_owned));
        numbers.values().iter().copied().zip(names).collect()
    };
    let rows = read(table.primary());
    let (_, index) = table.indexes().next().unwrap();
    let of_index = index.layout().columns.iter().map(|column| column.id);
    // Where there is no key, the index has the row number in the place of it.
    let numbers = match of_index.clone().any(|id| id == ColumnId(2)) {
        true => read(index).into_iter().map(|row| row.0).collect(),
        false => Vec::new(),
    };
    (rows, numbers)
}

fn writer(directory: &std::path::Path, has_key: bool) -> orrery_storage::Writer {
    let database = Arc::new(Database::create_or_open(directory).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut transaction = writer.begin().unwrap();
    let change = DefinitionChange::CreateTable(definition(has_key));
    transaction.define(change).unwrap();
    let options = CommitOptions::default();
    transaction.commit(options).unwrap().wait().unwrap();
    writer
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_in_any_order_are_laid_over_those_that_are_there() {
    let directory = tempfile::tempdir().unwrap();
    let writer = writer(&directory.path().join("db"), true);
    let mut model: BTreeMap<i32, Option<String>> = BTreeMap::new();
    let name = |number: i32| (number % 5 != 0).then(|| format!("n{}", number % 13));
    let ascending: Vec<Row> = (0..500).map(|at| (at * 3, name(at))).collect();
    let mixed: Vec<Row> = (0..500)
        .map(|at| (at * 7919 % 500 * 3 + 1, name(at)))
        .collect();
    let behind: Vec<Row> = (0..40).map(|at| (5_000 + at, name(at))).collect();
    for rows in [ascending, mixed, behind, Vec::new()] {
        let mut transaction = writer.begin().unwrap();
        let loaded = load_rows(&mut transaction, &rows).await.unwrap();
        assert_eq!(loaded, rows.len() as u64);
        model.extend(rows);
        let options = CommitOptions::default();
        transaction.commit(options).unwrap().wait().unwrap();
        let (rows, by_name) = content(writer.database().snapshot().tables());
        assert_eq!(rows, Vec::from_iter(model.clone()));
        let mut expected: Vec<_> = model.iter().collect();
        expected.sort_by_key(|(number, name)| (name.is_none(), (*name).clone(), **number));
        let expected: Vec<i32> = expected.into_iter().map(|row| *row.0).collect();
        assert_eq!(by_name, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_a_key_takes_rows_as_they_come() {
    let directory = tempfile::tempdir().unwrap();
    let writer = writer(&directory.path().join("db"), false);
    let rows: Vec<Row> = vec![(3, None), (1, Some("x".to_owned())), (3, None)];
    for times in 1..3 {
        let mut transaction = writer.begin().unwrap();
        assert_eq!(load_rows(&mut transaction, &rows).await.unwrap(), 3);
        let options = CommitOptions::default();
        transaction.commit(options).unwrap().wait().unwrap();
        let (found, _) = content(writer.database().snapshot().tables());
        assert_eq!(found, vec![rows.clone(); times].concat());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_may_not_be_undoes_the_load() {
    let directory = tempfile::tempdir().unwrap();
    let writer = writer(&directory.path().join("db"), true);
    let mut transaction = writer.begin().unwrap();
    load_rows(&mut transaction, &[(1, None), (9, None)])
        .await
        .unwrap();
    for (rows, state) in [
        // In order, out of order, and equal to a row that is there.
        (vec![(2, None), (2, None)], SqlState::UniqueViolation),
        (
            vec![(4, None), (2, None), (4, None)],
            SqlState::UniqueViolation,
        ),
        (vec![(2, None), (9, None)], SqlState::UniqueViolation),
    ] {
        let error = load_rows(&mut transaction, &rows).await.unwrap_err();
        assert_eq!(error.state, state, "{error}");
        assert_eq!(content(transaction.tables()).0, [(1, None), (9, None)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sorts_within_little_memory_do_not_take_it_from_each_other() {
    const ROWS: i32 = 200_000;
    let directory = tempfile::tempdir().unwrap();
    let writer = writer(&directory.path().join("db"), true);
    // Long texts, of which a sort keeps few, in an order that a step without a divisor of the
    // number makes.
    let numbers = (0..ROWS).map(|at| (i64::from(at) * 7_919 % i64::from(ROWS)) as i32);
    let rows: Vec<Row> = numbers
        .map(|number| (number, Some(format!("{number:0600}"))))
        .collect();
    for memory_bytes in [128 << 20, 256 << 20] {
        let runtime = Runtime::new(&RuntimeOptions {
            memory_bytes,
            is_process_bound: false,
            temp_dir: directory.path().to_owned(),
            batch_rows: 8_192,
            threads: 2,
        })
        .unwrap();
        let mut transaction = writer.begin().unwrap();
        let task = runtime.task(None);
        let loaded = load_with(&task, &mut transaction, &rows).await.unwrap();
        assert_eq!(loaded, rows.len() as u64);
        let (found, _) = content(transaction.tables());
        assert!(found.iter().map(|row| row.0).eq(0..ROWS));
        drop(transaction);
        assert_eq!(runtime.memory().reserved_bytes(), 0);
    }
}

/// Rows that say whether what makes them is told when nobody waits for them any more.
#[derive(Debug)]
struct Asks {
    schema: SchemaRef,
    are_told: Arc<std::sync::atomic::AtomicBool>,
}

impl PartitionStream for Asks {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let is_told = ToName::of(&task).is_some();
        let order = std::sync::atomic::Ordering::Relaxed;
        self.are_told.store(is_told, order);
        let none = datafusion::physical_plan::EmptyRecordBatchStream::new(Arc::clone(&self.schema));
        Box::pin(none)
    }
}

#[tokio::test]
async fn what_makes_rows_for_a_sort_ends_with_it() {
    let schema = plan(&[], 1).schema();
    let are_told = Arc::default();
    let part = Arc::new(Asks {
        schema: Arc::clone(&schema),
        are_told: Arc::clone(&are_told),
    });
    let rows = StreamingTableExec::try_new(schema, vec![part as _], None, None, false, None);
    let column = Arc::new(Column::new("2", 1));
    let by = LexOrdering::new([PhysicalSortExpr::new(column, SortOptions::default())]);
    let task = SessionContext::new().task_ctx();
    let sorted = sorted(Arc::new(rows.unwrap()), by.unwrap(), &task).unwrap();
    let mut stream = counted_stream(sorted, task).unwrap();
    assert!(stream.next().await.is_none());
    assert!(are_told.load(std::sync::atomic::Ordering::Relaxed));
}
