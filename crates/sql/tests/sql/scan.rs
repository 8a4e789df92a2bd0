//! Tests of stored tables through DataFusion against the same rows in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::Numbers;
use datafusion::arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::DataFusionError;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use orrery_sql::catalog;
use orrery_storage::table::{
    ColumnDefinition, ColumnId, ColumnType, DEFAULT_SCHEMA, DefinitionChange, IndexDefinition,
    KeyRows, PrimaryKey, RelationId, RowPlace, TableDefinition, TableState,
};
use orrery_storage::{CommitOptions, Database, Transaction, Writer, WriterOptions};
use proptest::prelude::*;
use tempfile::TempDir;

const TABLE: RelationId = RelationId(1);
const TEXT: ColumnType = ColumnType::Text {
    length_max: None,
    is_padded: false,
};
const CHAR: ColumnType = ColumnType::Text {
    length_max: Some(4),
    is_padded: true,
};

/// Name, type, and whether it may be NULL. The key is `a, b`.
const COLUMNS: &[(&str, ColumnType, bool)] = &[
    ("c", ColumnType::BigInt, true),
    ("a", ColumnType::Integer, false),
    ("d", decimal(12, 2), true),
    ("e", decimal(30, 4), true),
    ("f", ColumnType::Double, true),
    ("g", ColumnType::Date, true),
    ("h", TEXT, true),
    ("b", TEXT, false),
    ("i", TEXT, false),
    ("j", ColumnType::Boolean, true),
    ("k", ColumnType::SmallInt, false),
    ("l", ColumnType::Timestamp, true),
    ("m", ColumnType::Blob, true),
    ("p", CHAR, true),
    ("r", ColumnType::Real, true),
];
const COLORS: &[&str] = &["red", "green", "blue", "grey", "", "re\u{0}d"];
const NAMES: &[&str] = &["", "a", "ab", "b\u{0}c"];

const fn decimal(precision: u8, scale: u8) -> ColumnType {
    ColumnType::Decimal { precision, scale }
}

fn definition() -> TableDefinition {
    let id = |name: &str| {
        let place = COLUMNS.iter().position(|of| of.0 == name).unwrap();
        ColumnId(place as u32 + 1)
    };
    let columns = COLUMNS
        .iter()
        .map(|(name, column_type, is_nullable)| ColumnDefinition {
            id: id(name),
            name: (*name).to_owned(),
            column_type: *column_type,
            is_nullable: *is_nullable,
            default: None,
            initial: None,
        });
    let index = |number: u32, columns: &[&str], included: &[&str]| IndexDefinition {
        id: RelationId(number),
        name: format!("by_{}", columns.join("_")),
        columns: columns.iter().map(|name| id(name)).collect(),
        included: included.iter().map(|name| id(name)).collect(),
        is_unique: false,
        is_constraint: false,
    };
    TableDefinition {
        id: TABLE,
        schema: DEFAULT_SCHEMA.to_owned(),
        name: "t".to_owned(),
        columns: columns.collect(),
        next_column: COLUMNS.len() as u32 + 1,
        primary_key: Some(PrimaryKey {
            name: "t_pkey".to_owned(),
            columns: vec![id("a"), id("b")],
        }),
        indexes: vec![index(2, &["c"], &["h", "f"]), index(3, &["h", "g"], &["c"])],
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    }
}

/// Rows with these keys, two of which are never equal.
fn rows(keys: &[u64], numbers: &mut Numbers) -> RecordBatch {
    let count = keys.len();
    let mut of = |name: &str| -> ArrayRef {
        let n = &mut *numbers;
        let (_, column_type, _) = COLUMNS.iter().find(|of| of.0 == name).unwrap();
        let row = |_| ();
        let each = (0..count).map(row);
        match name {
            "a" => Arc::new(
                keys.iter()
                    .map(|key| (key / 4) as i32)
                    .collect::<Int32Array>(),
            ),
            "b" => Arc::new(StringViewArray::from_iter_values(
                keys.iter().map(|key| NAMES[(key % 4) as usize]),
            )),
            // In the order of the key, nearly, so that zones part it.
            "c" => Arc::new(
                keys.iter()
                    .map(|key| n.some(|n| (key / 200 + n.below(3)) as i64))
                    .collect::<Int64Array>(),
            ),
            "d" => {
                let values = each.map(|()| n.some(|n| n.below(4_000) as i128 - 2_000));
                Arc::new(
                    values
                        .collect::<Decimal128Array>()
                        .with_data_type(column_type.arrow()),
                )
            }
            "e" => {
                let wide = 10i128.pow(25);
                let values = each
                    .map(|()| n.some(|n| (n.below(9) as i128 - 4) * wide + n.below(50) as i128));
                Arc::new(
                    values
                        .collect::<Decimal128Array>()
                        .with_data_type(column_type.arrow()),
                )
            }
            "f" => Arc::new(
                each.map(|()| n.some(|n| n.pick(&[0.0, 1.5, -1.5, f64::NAN, f64::INFINITY, 9.25])))
                    .collect::<Float64Array>(),
            ),
            "g" => Arc::new(
                each.map(|()| n.some(|n| 18_262 + n.below(40) as i32))
                    .collect::<Date32Array>(),
            ),
            "h" => Arc::new(
                each.map(|()| n.some(|n| n.pick(COLORS)))
                    .collect::<StringViewArray>(),
            ),
            "i" => Arc::new(
                each.map(|()| Some(format!("text {} of many", n.below(1_000_000))))
                    .collect::<StringViewArray>(),
            ),
            "j" => Arc::new(
                each.map(|()| n.some(|n| n.below(2) == 0))
                    .collect::<BooleanArray>(),
            ),
            "k" => Arc::new(
                each.map(|()| Some(n.below(100) as i16 - 50))
                    .collect::<Int16Array>(),
            ),
            "l" => Arc::new(
                each.map(|()| n.some(|n| 1_577_836_800_000_000 + n.below(90) as i64 * 60_000_000))
                    .collect::<TimestampMicrosecondArray>(),
            ),
            "m" => {
                let values: Vec<Option<Vec<u8>>> = each
                    .map(|()| n.some(|n| vec![n.below(256) as u8; n.below(4) as usize]))
                    .collect();
                Arc::new(
                    values
                        .iter()
                        .map(|value| value.as_deref())
                        .collect::<BinaryViewArray>(),
                )
            }
            "p" => Arc::new(
                each.map(|()| n.some(|n| n.pick(&["x", "y", "xy", "x\u{1}"])))
                    .collect::<StringViewArray>(),
            ),
            _ => Arc::new(
                each.map(|()| n.some(|n| n.below(20) as f32 / 4.0 - 2.0))
                    .collect::<Float32Array>(),
            ),
        }
    };
    let columns = COLUMNS.iter().map(|column| of(column.0)).collect();
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn schema() -> Arc<Schema> {
    let fields = COLUMNS
        .iter()
        .map(|(name, of, is_nullable)| Field::new(*name, of.arrow(), *is_nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

struct House {
    database: Arc<Database>,
    writer: Writer,
    /// The same rows in memory.
    batches: Vec<RecordBatch>,
    _directory: TempDir,
}

fn commit(transaction: Transaction) {
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap();
}

fn places(table: &TableState, keys: &BTreeSet<u64>) -> Vec<RowPlace> {
    let keys: Vec<u64> = keys.iter().copied().collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(
            keys.iter()
                .map(|key| (key / 4) as i32)
                .collect::<Int32Array>(),
        ),
        Arc::new(StringViewArray::from_iter_values(
            keys.iter().map(|key| NAMES[(key % 4) as usize]),
        )),
    ];
    let mut encoded = KeyRows::default();
    table
        .primary()
        .keys()
        .encode_rows(&columns, &mut encoded)
        .unwrap();
    let found = table.primary().locate(&encoded).unwrap();
    found.into_iter().flatten().collect()
}

impl House {
    /// A table with rows in files, on top of which others came and some went.
    fn new(stored: u64, added: u64, deleted: u64, numbers: &mut Numbers) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::create_or_open(directory.path()).unwrap());
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        let mut transaction = writer.begin().unwrap();
        transaction
            .define(DefinitionChange::CreateTable(definition()))
            .unwrap();
        commit(transaction);
        let all = stored + added;
        // Which keys come later: scattered, and some behind all others.
        let is_late = |key: &u64| all > 0 && (key * 7919 + 13) % all < added;
        let (late, early): (Vec<u64>, Vec<u64>) = (0..all).partition(is_late);
        let mut house = Self {
            database,
            writer,
            batches: Vec::new(),
            _directory: directory,
        };
        house.insert(&early, numbers);
        if stored > 0 {
            house.writer.compact_table(TABLE).unwrap();
        }
        house.insert(&late, numbers);
        let gone: BTreeSet<u64> = (0..deleted.min(all)).map(|_| numbers.below(all)).collect();
        if !gone.is_empty() {
            house.delete(&gone);
        }
        house
    }

    fn insert(&mut self, keys: &[u64], numbers: &mut Numbers) {
        if keys.is_empty() {
            return;
        }
        let batch = rows(keys, numbers);
        let mut transaction = self.writer.begin().unwrap();
        transaction.insert_rows(TABLE, batch.columns()).unwrap();
        commit(transaction);
        self.batches.push(batch);
    }

    fn delete(&mut self, keys: &BTreeSet<u64>) {
        let mut transaction = self.writer.begin().unwrap();
        let places = places(transaction.tables().table(TABLE).unwrap(), keys);
        assert_eq!(places.len(), keys.len());
        transaction.delete_rows(TABLE, places).unwrap();
        commit(transaction);
        for batch in &mut self.batches {
            let a: &Int32Array = batch
                .column_by_name("a")
                .unwrap()
                .as_any()
                .downcast_ref()
                .unwrap();
            let b: &StringViewArray = batch
                .column_by_name("b")
                .unwrap()
                .as_any()
                .downcast_ref()
                .unwrap();
            let stays = (0..batch.num_rows()).map(|row| {
                let name = NAMES.iter().position(|name| *name == b.value(row)).unwrap();
                Some(!keys.contains(&(a.value(row) as u64 * 4 + name as u64)))
            });
            let stays: BooleanArray = stays.collect();
            *batch = filter_record_batch(batch, &stays).unwrap();
        }
    }

    fn config(partitions: usize, batch_rows: usize) -> SessionConfig {
        let mut config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_batch_size(batch_rows)
            .with_default_catalog_and_schema("orrery", DEFAULT_SCHEMA);
        config.options_mut().sql_parser.parse_float_as_decimal = true;
        config
    }

    fn stored(&self, partitions: usize, batch_rows: usize) -> SessionContext {
        let context = SessionContext::new_with_config(Self::config(partitions, batch_rows));
        context.register_catalog("orrery", catalog(self.database.snapshot().tables()));
        context
    }

    fn in_memory(&self) -> SessionContext {
        let mut config = Self::config(1, 8_192);
        config = config.with_create_default_catalog_and_schema(true);
        let context = SessionContext::new_with_config(config);
        let table = MemTable::try_new(schema(), vec![self.batches.clone()]).unwrap();
        context.register_table("t", Arc::new(table)).unwrap();
        context
    }
}

async fn try_ask(context: &SessionContext, text: &str) -> Result<Vec<String>, DataFusionError> {
    let batches = context.sql(text).await?.collect().await?;
    let answer = pretty_format_batches(&batches)?.to_string();
    let lines = answer.lines().filter(|line| line.starts_with('|')).skip(1);
    Ok(lines.map(str::to_owned).collect())
}

async fn ask(context: &SessionContext, text: &str) -> Vec<String> {
    let answer = try_ask(context, text).await;
    answer.unwrap_or_else(|error| panic!("{text}: {error}"))
}

async fn explain(context: &SessionContext, text: &str) -> String {
    ask(context, &format!("EXPLAIN {text}")).await.join("\n")
}

/// A condition on one column or two.
fn atom(n: &mut Numbers, keys: u64) -> String {
    let op = n.pick(&["=", "<", "<=", ">", ">=", "<>"]);
    let a = n.below(keys / 4 + 2);
    match n.below(26) {
        0 | 1 => format!("a {op} {a}"),
        2 => format!("a BETWEEN {a} AND {}", a + n.below(9)),
        3 => format!("a IN ({a}, {}, {})", n.below(keys / 4 + 2), n.below(9)),
        4 => format!("b {op} '{}'", n.pick(&["", "a", "ab", "b"])),
        5 => format!("{} {op} c", n.below(keys / 200 + 2)),
        6 => format!("c IN ({}, NULL, {})", n.below(30), n.below(keys / 200 + 2)),
        7 => format!("{} IS NULL", n.pick(&["c", "e", "g", "h", "p"])),
        8 => format!("{} IS NOT NULL", n.pick(&["c", "f", "h", "l"])),
        9 => format!("d {op} {}.{:02}", n.below(20) as i64 - 10, n.below(100)),
        10 => format!(
            "e {op} {}",
            n.pick(&[
                "0",
                "1000000000000000000000.0001",
                "-4000000000000000000000"
            ])
        ),
        11 => format!(
            "f {op} {}",
            n.pick(&[
                "0.0::double",
                "1.5::double",
                "-0.0::double",
                "'NaN'::double"
            ])
        ),
        12 => format!("g {op} DATE '2020-01-{:02}'", 1 + n.below(28)),
        13 => format!("h {op} '{}'", n.pick(&["red", "green", "zebra", "a", ""])),
        14 => format!(
            "h {} '{}'",
            n.pick(&["LIKE", "NOT LIKE"]),
            n.pick(&["%e%", "gr%", "%d", "_ed"])
        ),
        15 => format!("h IN ('red', '{}')", n.pick(&["blue", "none"])),
        16 => format!("h NOT IN ('red', '{}')", n.pick(&["blue", "none"])),
        17 => format!(
            "i {}",
            n.pick(&["LIKE '%7%'", "> 'text 5'", "LIKE 'text 12%'"])
        ),
        18 => n
            .pick(&["j", "NOT j", "j IS TRUE", "j = false", "j IS NOT TRUE"])
            .to_owned(),
        19 => n
            .pick(&["k % 3 = 1", "k + a > 10", "a < c", "length(h) = 3", "k = 7"])
            .to_owned(),
        20 => format!("l {op} TIMESTAMP '2020-01-01T00:{:02}:00'", n.below(60)),
        21 => format!("p {op} '{}'", n.pick(&["x", "x ", "y", "x   "])),
        22 => format!(
            "r {op} {}",
            n.pick(&["0.25::real", "1.0::real", "-2::real"])
        ),
        23 => format!("coalesce(h, 'none') {op} 'none'"),
        24 => "h IS NOT DISTINCT FROM 'red'".to_owned(),
        _ => format!("c {op} {}", n.below(keys / 200 + 2)),
    }
}

fn condition(n: &mut Numbers, keys: u64) -> String {
    let count = 1 + n.below(3);
    let parts: Vec<String> = (0..count)
        .map(|_| match n.below(5) {
            0 => format!("({} OR {})", atom(n, keys), atom(n, keys)),
            1 => format!("NOT ({})", atom(n, keys)),
            _ => atom(n, keys),
        })
        .collect();
    parts.join(" AND ")
}

/// A text, and whether its rows have an order.
fn query(n: &mut Numbers, keys: u64) -> (String, bool) {
    let all: Vec<&str> = COLUMNS.iter().map(|column| column.0).collect();
    let some: Vec<&str> = all.iter().copied().filter(|_| n.below(4) == 0).collect();
    let some = if some.is_empty() {
        "h, c".to_owned()
    } else {
        some.join(", ")
    };
    let narrow = n.pick(&["c, a", "h, g", "f, c, h", "a"]);
    let condition = condition(n, keys);
    let limit = n.below(30);
    match n.below(9) {
        0 => (format!("SELECT * FROM t WHERE {condition}"), false),
        1 | 2 => (format!("SELECT {some} FROM t WHERE {condition}"), false),
        3 => (format!("SELECT {narrow} FROM t WHERE {condition}"), false),
        4 => (format!("SELECT count(*) FROM t WHERE {condition}"), false),
        5 => (
            format!("SELECT a, b, {some} FROM t WHERE {condition} ORDER BY a, b LIMIT {limit}"),
            true,
        ),
        6 => (
            format!(
                "SELECT g, a, b FROM t WHERE {condition} ORDER BY g DESC NULLS LAST, a DESC, b LIMIT {limit}"
            ),
            true,
        ),
        7 => (
            format!(
                "SELECT t.a, t.b, u.i FROM t JOIN t u ON t.k = u.a AND u.b = 'a' WHERE u.a < 9 AND t.{}",
                "a < 400"
            ),
            false,
        ),
        _ => (
            format!(
                "SELECT h, count(*), min(c), max(g), sum(d), min(b) FROM t WHERE {condition} GROUP BY h"
            ),
            false,
        ),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_stored_table_answers_as_the_same_rows_in_memory(
        seed in any::<u64>(),
        stored in prop::sample::select(vec![0u64, 30, 1_024, 3_000, 5_000, 40_000]),
        added in prop::sample::select(vec![0u64, 1, 50, 1_500]),
        deleted in prop::sample::select(vec![0u64, 3, 200]),
        partitions in 1usize..4,
        batch_rows in prop::sample::select(vec![100usize, 1_024, 8_192]),
    ) {
        let numbers = &mut Numbers(seed);
        let house = House::new(stored, added, deleted, numbers);
        let (stored_rows, in_memory) = (house.stored(partitions, batch_rows), house.in_memory());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let fixed = ["SELECT * FROM t", "SELECT count(*), min(a), max(c), count(h), min(g), max(g) FROM t"];
        let mut texts: Vec<(String, bool)> = fixed.iter().map(|text| ((*text).to_owned(), false)).collect();
        texts.extend((0..20).map(|_| query(numbers, stored + added)));
        let mut answered = 0;
        for (text, has_order) in texts {
            let (mut found, mut expected) = runtime.block_on(async {
                (try_ask(&stored_rows, &text).await, try_ask(&in_memory, &text).await)
            });
            // What cannot be planned cannot be planned over either.
            let (Ok(found), Ok(expected)) = (&mut found, &mut expected) else {
                prop_assert!(found.is_err() && expected.is_err(), "{text}: {found:?}, {expected:?}");
                continue;
            };
            answered += 1;
            if !has_order {
                found.sort();
                expected.sort();
            }
            if found != expected {
                let plan = runtime.block_on(explain(&stored_rows, &text));
                prop_assert_eq!(found, expected, "{}\n{}", text, plan);
            }
        }
        prop_assert!(answered > 15);
        // A limit alone may give any rows, but so many.
        let all: u64 = house.batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let limited = runtime.block_on(ask(&stored_rows, "SELECT i FROM t LIMIT 700"));
        prop_assert_eq!(limited.len() as u64, all.min(700));
    }
}

/// The number that EXPLAIN ANALYZE tells of the scan.
async fn told(context: &SessionContext, text: &str, name: &str) -> usize {
    let lines = ask(context, &format!("EXPLAIN ANALYZE {text}"))
        .await
        .join("\n");
    let scan = lines
        .split("ScanExec")
        .nth(1)
        .unwrap_or_else(|| panic!("{lines}"));
    let value = scan.split(&format!("{name}=")).nth(1);
    let value = value.unwrap_or_else(|| panic!("{lines}"));
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn little_is_read_of_what_the_key_the_zones_and_an_index_rule_out() {
    let house = House::new(40_000, 20, 20, &mut Numbers(7));
    let context = house.stored(2, 8_192);
    let by_key = "SELECT i FROM t WHERE a = 77 AND b = 'ab'";
    let plan = explain(&context, by_key).await;
    assert!(plan.contains("ranges=1 of 1 rows"), "{plan}");
    assert!(!plan.contains("FilterExec"), "{plan}");
    assert!(told(&context, by_key, "rows_looked_at").await <= 3);
    let by_prefix = "SELECT i FROM t WHERE a IN (5, 900, 5000) AND b >= 'a'";
    assert!(told(&context, by_prefix, "rows_looked_at").await <= 20);
    // By zones: `c` nearly follows the key. The index on `c` has no `i`, and its rows are too many
    // to be looked up.
    let by_zone = "SELECT i FROM t WHERE c BETWEEN 90 AND 110";
    assert!(told(&context, by_zone, "vectors_skipped").await >= 30);
    let by_code = "SELECT i FROM t WHERE h = 'none of them'";
    assert!(told(&context, by_code, "rows_looked_at").await <= 20);
    let covered = "SELECT h, a FROM t WHERE c = 90";
    let plan = explain(&context, covered).await;
    assert!(plan.contains("index=by_c"), "{plan}");
    assert!(told(&context, covered, "rows_looked_at").await <= 1_000);
    // A few rows of an index without `i` are looked up, new ones and gone ones among them.
    let few = "SELECT i, a, b FROM t WHERE h = 'green' AND g = DATE '2020-01-09' AND a < 9000";
    let plan = explain(&context, few).await;
    assert!(plan.contains("looked up by=by_h_g"), "{plan}");
    assert!(told(&context, few, "rows_looked_at").await <= 400);
    let (mut found, mut expected) = (ask(&context, few).await, ask(&house.in_memory(), few).await);
    found.sort();
    expected.sort();
    assert!(!found.is_empty());
    assert_eq!(found, expected);
    // A few rows are enough.
    let first = "SELECT i FROM t WHERE k = 7 LIMIT 2";
    assert!(told(&context, first, "rows_looked_at").await <= 30_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_in_the_order_of_the_key_and_hints_from_above_spare_work() {
    let house = House::new(100_000, 20, 0, &mut Numbers(8));
    let context = house.stored(2, 8_192);
    let plan = explain(&context, "SELECT a, b FROM t ORDER BY a, b").await;
    assert!(!plan.contains("SortExec"), "{plan}");
    let join = "SELECT count(*) FROM t JOIN t u ON t.c = u.a WHERE u.a BETWEEN 100 AND 102 AND u.b = 'a' AND t.k > -99";
    let plan = explain(&context, join).await;
    assert!(plan.contains("hints="), "{plan}");
    let top = "SELECT i FROM t ORDER BY c DESC NULLS LAST LIMIT 3";
    let plan = explain(&context, top).await;
    assert!(plan.contains("hints="), "{plan}");
}
