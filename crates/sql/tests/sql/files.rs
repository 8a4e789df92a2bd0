//! Tests of files as tables, and of broken files.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use crate::common::House;
use orrery_sql::{FileAccess, Session, SessionOptions};

struct Files {
    house: House,
    session: Session,
}

impl Files {
    fn new() -> Self {
        let house = House::new();
        let session = house.session_with(SessionOptions {
            files: FileAccess::allowed([]),
            ..SessionOptions::default()
        });
        Self { house, session }
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.house.directory.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(PathBuf::from(&path).parent().unwrap()).unwrap();
        if name.ends_with(".gz") {
            let file = fs::File::create(&path).unwrap();
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            packed.write_all(text.as_bytes()).unwrap();
            packed.finish().unwrap();
        } else {
            fs::write(&path, text).unwrap();
        }
        path
    }

    fn rows(&self, text: &str) -> Vec<String> {
        self.house.rows(&self.session, text)
    }

    fn done(&self, text: &str) -> String {
        self.house.done(&self.session, text).tag.to_string()
    }

    fn refused(&self, text: &str) -> (&'static str, String) {
        self.house.refused(&self.session, text)
    }
}

const CSV: &str = "id,name,price,born,at,is,code\n\
    1,lamp,19.90,2026-01-02,2026-01-02 03:04:05,true,007\n\
    2,\"a \"\"b\"\",\nc\",,,,false,\n\
    30,,45,1999-12-31,1999-12-31 00:00:00,TRUE,12\n";

#[test]
fn a_csv_file_has_the_types_that_fit_its_rows() {
    let files = Files::new();
    for path in [files.write("a.csv", CSV), files.write("b.csv.gz", CSV)] {
        assert_eq!(
            files.rows(&format!("select * from '{path}' order by id")),
            [
                "1 lamp 19.9 2026-01-02 2026-01-02T03:04:05 true 007",
                "2 a \"b\",\nc NULL NULL NULL false NULL",
                "30 NULL 45.0 1999-12-31 1999-12-31T00:00:00 true 12"
            ]
        );
        // A column alone, none, and joined with itself.
        assert_eq!(
            files.rows(&format!("select name from '{path}' where id = 1")),
            ["lamp"]
        );
        assert_eq!(files.rows(&format!("select count(*) from '{path}'")), ["3"]);
        assert_eq!(
            files.rows(&format!(
                "select b.code from '{path}' a join '{path}' b on a.id = b.id and a.price > 20"
            )),
            ["12"]
        );
    }
    let tabs = files.write("c.tsv", "a\tb\n1\tx,y\n");
    assert_eq!(files.rows(&format!("select a, b from '{tabs}'")), ["1 x,y"]);
}

#[test]
fn directories_patterns_json_and_parquet_are_read_too() {
    let files = Files::new();
    files.write("many/one.csv", "a,b\n1,x\n");
    files.write("many/two.csv", "a,b\n2,y\n3,z\n");
    files.write("many/_hidden.csv", "no,such,columns\n");
    let sum = |location: &str| {
        let location = files.path(location);
        files.rows(&format!("select count(*), sum(a) from '{location}'"))
    };
    assert_eq!(sum("many"), ["3 6"]);
    assert_eq!(sum("many/*.csv"), ["3 6"]);
    assert_eq!(sum("many/t?o.csv"), ["2 5"]);
    let json = files.write("x.json", "{\"a\": 1, \"b\": \"x\"}\n{\"a\": 5}\n");
    assert_eq!(
        files.rows(&format!("select a, b from '{json}' order by a")),
        ["1 x", "5 NULL"]
    );
    files.done("create table t (a int primary key, b varchar(9), c timestamp, d numeric(9,3))");
    files.done(
        "insert into t values (1, 'x', '2026-01-02 03:04:05.678', 1.5), (2, null, null, null)",
    );
    let parquet = files.path("t.parquet");
    assert_eq!(
        files.done(&format!("copy t to '{parquet}' (format parquet)")),
        "COPY 2"
    );
    assert_eq!(
        files.rows(&format!("select * from '{parquet}' except select * from t")),
        Vec::<String>::new()
    );
    assert_eq!(
        files.done(&format!("create table u as select * from '{parquet}'")),
        "SELECT 2"
    );
    assert_eq!(
        files.rows("select * from u except select * from t"),
        Vec::<String>::new()
    );
    files.write("mixed/one.csv", "a\n1\n");
    files.write("mixed/two.json", "{\"a\": 1}\n");
    let mixed = files.path("mixed");
    assert_eq!(
        files.refused(&format!("select * from '{mixed}'")).0,
        "22023"
    );
    assert_eq!(
        files
            .refused(&format!("select * from '{}'", files.path("no.csv")))
            .0,
        "58P01"
    );
    assert_eq!(
        files
            .refused(&format!("select * from '{}'", files.write("x.odt", "x")))
            .0,
        "0A000"
    );
    assert_eq!(
        files.refused("select * from 'http://localhost/x.csv'").0,
        "0A000"
    );
}

#[test]
fn a_broken_row_names_file_line_and_column() {
    let files = Files::new();
    // Behind the rows that the types are taken from.
    let numbers: String = (0..250_000).map(|n| format!("{n},x\n")).collect();
    let path = files.write("a.csv", &format!("a,b\n{numbers}many,x\n"));
    let (code, message) = files.refused(&format!("select sum(a) from '{path}'"));
    assert_eq!(code, "22P02");
    assert!(
        message.contains("a.csv, line 250002, column a: \"many\""),
        "{message}"
    );
    let path = files.write("b.csv", &format!("a,b\n{numbers}1\n"));
    let (code, message) = files.refused(&format!("select sum(a) from '{path}'"));
    assert_eq!(code, "22P04");
    assert!(
        message.contains("missing data for column \"b\"") && message.contains("b.csv, line 250002"),
        "{message}"
    );
    let path = files.write("c.csv", &format!("a,b\n{numbers}1,x,y\n"));
    let (code, message) = files.refused(&format!("select count(*) from '{path}'"));
    assert_eq!(code, "22P04");
    assert!(
        message.contains("c.csv, line 250002, character 5"),
        "{message}"
    );
    let cut = files.write("d.csv.gz", CSV);
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 9]).unwrap();
    let (code, message) = files.refused(&format!("select count(*) from '{cut}'"));
    assert!(code == "58030" && message.contains("d.csv.gz"), "{message}");
    // A file that breaks in the middle of an INSERT leaves nothing.
    files.done("create table t (a int primary key, b text)");
    let path = files.path("a.csv");
    assert_eq!(
        files
            .refused(&format!("insert into t select * from '{path}'"))
            .0,
        "22P02"
    );
    assert_eq!(files.rows("select count(*) from t"), ["0"]);
}

#[test]
fn files_that_would_be_misread_are_refused() {
    let files = Files::new();
    files.write("order/one.csv", "a,b\n1,2\n");
    files.write("order/two.csv", "b,a\n3,4\n");
    let order = files.path("order");
    let (code, message) = files.refused(&format!("select a from '{order}'"));
    assert!(code == "22P04" && message.contains("two.csv"), "{message}");
    let swapped = files.path("order/two.csv");
    files.done(&format!(
        "create external table swapped (a int, b int) stored as csv location '{swapped}'"
    ));
    assert_eq!(files.refused("select a from swapped").0, "22P04");
    // A pattern is of names in the directory, and takes all of them.
    files.write("deep/x=1.csv", "a\n1\n");
    files.write("deep/below.csv/more.csv", "a\n2\n");
    let deep = files.path("deep/*.csv");
    assert_eq!(files.rows(&format!("select a from '{deep}'")), ["1"]);
    // Integers beyond 64 bits stay different.
    let long = files.write(
        "long.csv",
        "id\n12345678901234567890\n12345678901234567891\n",
    );
    assert_eq!(
        files.rows(&format!("select count(distinct id) from '{long}'")),
        ["2"]
    );
    let commas = files.write("commas.csv", &",".repeat(10_000));
    assert_eq!(
        files.refused(&format!("select * from '{commas}'")).0,
        "54011"
    );
    for statement in [
        "copy (select 1) to '/dev/null'",
        "create table t as select * from '/dev/null.csv'",
    ] {
        assert!(
            ["42809", "58P01"].contains(&files.refused(statement).0),
            "{statement}"
        );
    }
    files.done("create table t (a text)");
    assert_eq!(files.refused("copy t from '/dev/null'").0, "42809");
    let missing = files.path("no/such/x.csv");
    assert_eq!(files.refused(&format!("copy t to '{missing}'")).0, "58P01");
    let packed = files.path("x.csv.gz");
    assert_eq!(files.refused(&format!("copy t to '{packed}'")).0, "0A000");
    // A plan that is kept would have the files of before.
    let grows = files.write("grows.csv", "a\n1\n");
    let text = format!("select sum(a) from '{grows}'");
    let house = &files.house;
    let prepared = house
        .threads
        .block_on(files.session.prepare(&text))
        .unwrap();
    fs::write(&grows, "a\n1\n20\n").unwrap();
    let sum = house.threads.block_on(async {
        use futures::TryStreamExt;
        let outcome = files.session.run(&prepared, &[]).await.unwrap();
        let orrery_sql::Outcome::Query(rows) = outcome else {
            panic!("a query has rows");
        };
        rows.try_collect::<Vec<_>>().await.unwrap()
    });
    let column = sum
        .iter()
        .find(|batch| batch.num_rows() > 0)
        .unwrap()
        .column(0);
    assert_eq!(
        datafusion::arrow::util::display::array_value_to_string(column, 0).unwrap(),
        "21"
    );
}

#[test]
fn an_external_table_is_kept_and_only_its_place_with_it() {
    let mut files = Files::new();
    let path = files.write("it's.csv", "1;x\n2;-\n");
    let quoted = path.replace('\'', "''");
    files.done(&format!(
        "create external table ext (a bigint, \"B b\" varchar(5)) stored as csv
         options ('has_header' 'false', 'delimiter' ';', 'null' '-') location '{quoted}'"
    ));
    files.done("create view over_ext as select a * 2 as two from ext");
    let csv = files.write("named.csv", "x,y\n1,2\n");
    files.done(&format!(
        "create external table named stored as csv location '{csv}'"
    ));
    let json = files.write("x.data", "{\"a\": 7}\n");
    files.done(&format!(
        "create external table if not exists js stored as json location '{json}'"
    ));
    assert_eq!(
        files
            .refused(&format!(
                "create external table js stored as json location '{json}'"
            ))
            .0,
        "42P07"
    );
    let house = std::mem::replace(&mut files.house, House::new());
    drop(files.session);
    let mut house = house;
    house.open();
    let session = house.session_with(SessionOptions {
        files: FileAccess::allowed([]),
        ..SessionOptions::default()
    });
    let files = Files { house, session };
    assert_eq!(
        files.rows("select a, \"B b\" from ext order by a"),
        ["1 x", "2 NULL"]
    );
    assert_eq!(
        files.rows("select two from over_ext order by two"),
        ["2", "4"]
    );
    assert_eq!(files.rows("select y from named"), ["2"]);
    assert_eq!(files.rows("select a from js"), ["7"]);
    assert_eq!(
        files.rows("select table_type from information_schema.tables where table_name = 'ext'"),
        ["BASE TABLE"]
    );
    // The files are looked at whenever it is read.
    fs::write(&path, "5;z\n").unwrap();
    assert_eq!(files.rows("select a from ext"), ["5"]);
    assert_eq!(files.refused("insert into ext values (1, 'x')").0, "42809");
    let other = files.house.session();
    assert_eq!(files.house.refused(&other, "select * from ext").0, "42501");
    assert_eq!(files.refused("drop view ext").0, "42809");
    assert_eq!(files.refused("drop table ext").0, "2BP01");
    files.done("drop table ext cascade; drop table named; drop table js");
    assert_eq!(files.refused("select * from over_ext").0, "42P01");
    for text in [
        "create external table e (a int primary key) stored as csv location '/x'",
        "create external table e stored as orc location '/x'",
        "create external table e stored as csv options ('colour' 'red') location '/x'",
    ] {
        assert_eq!(files.refused(text).0, "0A000", "{text}");
    }
}

#[test]
fn many_rows_of_files_are_loaded_in_bulk() {
    let files = Files::new();
    let rows: String = (0..400_000_u64)
        .map(|n| format!("{},{}\n", n * 7_919 % 400_000, "y".repeat(40)))
        .collect();
    let csv = files.write("big.csv", &format!("id,s\n{rows}"));
    let parquet = files.path("big.parquet");
    files.done(&format!(
        "copy (select * from '{csv}') to '{parquet}' (format parquet)"
    ));
    let roomy = files.house.session_in_with(
        1 << 30,
        SessionOptions {
            files: FileAccess::allowed([]),
            ..SessionOptions::default()
        },
    );
    for (number, path) in [csv, parquet].iter().enumerate() {
        let table = format!("t{number}");
        files.done(&format!(
            "create table {table} (id bigint primary key, s text)"
        ));
        let text = format!("insert into {table} select * from '{path}'");
        assert_eq!(
            files.house.done(&roomy, &text).tag.to_string(),
            "INSERT 0 400000"
        );
        assert_eq!(
            files.rows(&format!(
                "select count(*), min(id), max(id), min(length(s)) from {table}"
            )),
            ["400000 0 399999 40"]
        );
    }
}

#[test]
fn files_have_no_more_columns_than_tables() {
    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::parquet::arrow::ArrowWriter;
    use std::sync::Arc;
    let files = Files::new();
    for count in [1_600, 1_601] {
        let names: Vec<String> = (0..count).map(|number| format!("c{number}")).collect();
        let pairs: Vec<String> = names.iter().map(|name| format!("\"{name}\": 1")).collect();
        let json = files.write("x.jsonl", &format!("{{{}}}\n", pairs.join(", ")));
        let ones: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let columns = names.iter().map(|name| (name, Arc::clone(&ones)));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let parquet = files.path("x.parquet");
        let file = fs::File::create(&parquet).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        for path in [json, parquet] {
            let text = format!("select c0, c{} from '{path}'", count - 1);
            if count == 1_600 {
                assert_eq!(files.rows(&text), ["1 1"]);
                continue;
            }
            let (state, words) = files.refused(&text);
            assert_eq!(state, "54011", "{words}");
            assert!(words.contains("1601") && words.contains("1600"), "{words}");
        }
    }
}
