//! What is written is read back with Arrow's and Parquet's own readers.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::ipc::reader::StreamReader;
use orrery_term::{Term, Triple, vocabulary::xsd};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::{SolutionFormat, SolutionSerializer};

type Row = Vec<Option<Term<'static>>>;

fn write(format: SolutionFormat, variables: &[&str], rows: &[Row]) -> Vec<u8> {
    let variables: Vec<String> = variables.iter().map(|&name| name.to_owned()).collect();
    let directory = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    let mut serializer =
        SolutionSerializer::start(format, &variables, &mut out).spill_to(directory.path());
    for row in rows {
        serializer
            .row(row.iter().map(Option::as_ref), &mut out)
            .unwrap();
    }
    while !serializer.finish(&mut out).unwrap() {}
    out
}

fn read(format: SolutionFormat, bytes: Vec<u8>) -> RecordBatch {
    let (schema, batches): (_, Vec<RecordBatch>) = if format == SolutionFormat::Arrow {
        let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
        (reader.schema(), reader.map(Result::unwrap).collect())
    } else {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let schema = Arc::clone(builder.schema());
        let reader = builder.build().unwrap();
        (schema, reader.map(Result::unwrap).collect())
    };
    concat_batches(&schema, &batches).unwrap()
}

const BOTH: [SolutionFormat; 2] = [SolutionFormat::Arrow, SolutionFormat::Parquet];

/// One column with these values, read back from each format.
fn column(values: &[Term<'static>]) -> Vec<(Arc<dyn Array>, Field)> {
    let mut rows: Vec<Row> = values.iter().map(|term| vec![Some(term.clone())]).collect();
    rows.push(vec![None]);
    BOTH.map(|format| {
        let batch = read(format, write(format, &["v"], &rows));
        let column = Arc::clone(batch.column(0));
        assert_eq!(column.len(), values.len() + 1);
        assert!(column.is_null(values.len()), "{format:?}");
        (column, batch.schema().field(0).clone())
    })
    .into()
}

fn typed(values: &[&'static str], datatype: &'static str) -> Vec<Term<'static>> {
    values
        .iter()
        .map(|text| Term::typed(*text, datatype))
        .collect()
}

fn metadata<'f>(field: &'f Field, key: &str) -> Option<&'f str> {
    field.metadata().get(key).map(String::as_str)
}

#[test]
fn uniform_columns_are_typed() {
    for (column, field) in column(&typed(&["1", "-7", "+5", "007"], xsd::INTEGER)) {
        assert_eq!(field.data_type(), &DataType::Int64);
        assert_eq!(metadata(&field, "orrery.datatype"), Some(xsd::INTEGER));
        let values = column.as_primitive::<Int64Type>();
        assert_eq!(values.values()[..4], [1, -7, 5, 7]);
    }
    for (column, field) in column(&typed(&["1.50", "-0.125", "300", ".5"], xsd::DECIMAL)) {
        assert_eq!(field.data_type(), &DataType::Decimal128(38, 3));
        let values = column.as_primitive::<Decimal128Type>();
        assert_eq!(values.values()[..4], [1500, -125, 300_000, 500]);
    }
    for (column, field) in column(&typed(&["1e3", "-INF", "0.5"], xsd::DOUBLE)) {
        assert_eq!(field.data_type(), &DataType::Float64);
        let values = column.as_primitive::<Float64Type>();
        assert_eq!(values.values()[..3], [1000.0, f64::NEG_INFINITY, 0.5]);
    }
    for (column, _) in column(&typed(&["1.5", "INF"], xsd::FLOAT)) {
        let values = column.as_primitive::<Float32Type>();
        assert_eq!(values.values()[..2], [1.5, f32::INFINITY]);
    }
    for (column, _) in column(&typed(&["true", "0", "false", "1"], xsd::BOOLEAN)) {
        let values: Vec<_> = column.as_boolean().iter().collect();
        assert_eq!(
            values[..4],
            [Some(true), Some(false), Some(false), Some(true)]
        );
    }
    for (column, _) in column(&typed(
        &["1970-01-01", "2000-03-01", "1969-12-31", "-0001-01-01"],
        xsd::DATE,
    )) {
        let values = column.as_primitive::<Date32Type>();
        assert_eq!(values.values()[..3], [0, 11_017, -1]);
        assert!(values.value(3) < -719_000);
    }
    let times = ["1970-01-01T00:00:01.5", "1969-12-31T24:00:00"];
    for (column, field) in column(&typed(&times, xsd::DATE_TIME)) {
        assert_eq!(
            field.data_type(),
            &DataType::Timestamp(TimeUnit::Microsecond, None)
        );
        let values = column.as_primitive::<TimestampMicrosecondType>();
        assert_eq!(values.values()[..2], [1_500_000, 0]);
    }
    let instants = [
        "1970-01-01T01:00:00+01:00",
        "1970-01-01T00:00:00-00:30",
        "1970-01-01T00:00:00Z",
    ];
    for (column, field) in column(&typed(&instants, xsd::DATE_TIME)) {
        let zone = Some("UTC".into());
        assert_eq!(
            field.data_type(),
            &DataType::Timestamp(TimeUnit::Microsecond, zone)
        );
        let values = column.as_primitive::<TimestampMicrosecondType>();
        assert_eq!(values.values()[..3], [0, 1_800_000_000, 0]);
    }
}

#[test]
fn texts_say_what_they_are() {
    type Case = (
        Vec<Term<'static>>,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
    );
    let cases: [Case; 4] = [
        (
            vec![Term::iri("http://a/"), Term::iri("http://b/")],
            "iri",
            None,
            None,
        ),
        (
            vec![Term::string("x"), Term::string("")],
            "literal",
            Some(xsd::STRING),
            None,
        ),
        (
            vec![Term::language("x", "en"), Term::language("y", "EN")],
            "literal",
            None,
            Some("en"),
        ),
        (
            typed(&["P1D", "P2D"], xsd::DURATION),
            "literal",
            Some(xsd::DURATION),
            None,
        ),
    ];
    for (terms, kind, datatype, language) in cases {
        for (column, field) in column(&terms) {
            assert_eq!(field.data_type(), &DataType::Utf8);
            assert_eq!(metadata(&field, "orrery.kind"), Some(kind));
            assert_eq!(metadata(&field, "orrery.datatype"), datatype);
            assert_eq!(metadata(&field, "orrery.language"), language);
            assert_eq!(column.as_string::<i32>().len(), terms.len() + 1);
        }
    }
    for (column, _) in column(&[Term::BlankNode(17), Term::BlankNode(18)]) {
        assert_eq!(column.as_string::<i32>().value(0), "b17");
    }
}

#[test]
fn what_a_type_cannot_hold_exactly_stays_text() {
    let cases = [
        typed(&["1", "9223372036854775808"], xsd::INTEGER),
        typed(&["1", "one"], xsd::INTEGER),
        typed(&["1", "300"], xsd::BYTE),
        typed(&["1", "-1"], xsd::UNSIGNED_INT),
        typed(&["1", "inf"], xsd::DOUBLE),
        typed(&["1", "+NaN"], xsd::FLOAT),
        typed(
            &["1", "0.000000000000000000000000000000000000001"],
            xsd::DECIMAL,
        ),
        typed(
            &["99999999999999999999999999999999999999", "0.5"],
            xsd::DECIMAL,
        ),
        typed(&["2000-01-01", "2000-01-01Z"], xsd::DATE),
        typed(
            &["2000-01-01T00:00:00", "2000-01-01T00:00:00Z"],
            xsd::DATE_TIME,
        ),
        typed(&["2000-01-01T00:00:00.1234567Z"], xsd::DATE_TIME),
        typed(&["2000-02-30"], xsd::DATE),
    ];
    for terms in cases {
        for (column, field) in column(&terms) {
            assert_eq!(field.data_type(), &DataType::Utf8, "{terms:?}");
            let Some(Term::Literal(literal)) = terms.last() else {
                panic!("no literal");
            };
            assert_eq!(
                metadata(&field, "orrery.datatype"),
                Some(literal.datatype())
            );
            let last = column.as_string::<i32>().value(terms.len() - 1);
            assert_eq!(last, literal.lexical);
        }
    }
}

#[test]
fn mixed_columns_hold_terms() {
    let triple = Triple::new(
        Term::iri("http://s/"),
        Term::iri("http://p/"),
        Term::string("o"),
    );
    let terms = [
        Term::iri("http://a/"),
        Term::BlankNode(3),
        Term::string("x"),
        Term::language("y", "de"),
        Term::typed("5", xsd::INTEGER),
        Term::Triple(Box::new(triple.unwrap())),
    ];
    for (column, field) in column(&terms) {
        assert_eq!(metadata(&field, "orrery.kind"), Some("term"));
        let column = column.as_struct();
        let text = |name: &str, row| {
            let part = column.column_by_name(name).unwrap().as_string::<i32>();
            (!part.is_null(row)).then(|| part.value(row).to_owned())
        };
        let cell = |row| ["kind", "value", "datatype", "language"].map(|name| text(name, row));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(cell(0), [some("iri"), some("http://a/"), None, None]);
        assert_eq!(cell(1), [some("bnode"), some("b3"), None, None]);
        assert_eq!(
            cell(2),
            [some("literal"), some("x"), some(xsd::STRING), None]
        );
        assert_eq!(text("language", 3), some("de"));
        assert_eq!(
            cell(4),
            [some("literal"), some("5"), some(xsd::INTEGER), None]
        );
        assert_eq!(text("kind", 5), some("triple"));
        assert!(text("value", 5).unwrap().contains("<http://p/>"));
    }
}

#[test]
fn many_rows_go_through_a_file_in_bounded_steps() {
    let rows = 60_000;
    let variables = ["n".to_owned(), "text".to_owned()];
    for format in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let mut serializer =
            SolutionSerializer::start(format, &variables, &mut out).spill_to(directory.path());
        for number in 0..rows {
            let n = Term::typed(number.to_string(), xsd::INTEGER);
            let text = Term::string(format!("the text of row {number}"));
            serializer
                .row([Some(&n), Some(&text)].into_iter(), &mut out)
                .unwrap();
            assert!(
                out.is_empty(),
                "nothing is written before the types are known"
            );
        }
        let (mut all, mut steps) = (Vec::new(), 0);
        while !serializer.finish(&mut out).unwrap() {
            assert!(out.len() < 2 << 20);
            all.append(&mut out);
            steps += 1;
        }
        all.append(&mut out);
        assert!(steps > 5);
        let batch = read(format, all);
        assert_eq!(batch.num_rows(), rows);
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        assert!(
            numbers
                .values()
                .iter()
                .zip(0..)
                .all(|(held, expected)| *held == expected)
        );
        assert_eq!(
            batch.column(1).as_string::<i32>().value(rows - 1),
            "the text of row 59999"
        );
    }
}

#[test]
fn answers_without_rows_or_variables_are_answers() {
    for format in BOTH {
        let batch = read(format, write(format, &["a", "b"], &[]));
        assert_eq!((batch.num_rows(), batch.num_columns()), (0, 2));
        let mut out = Vec::new();
        SolutionSerializer::boolean(format, true, &mut out).unwrap();
        let batch = read(format, out);
        assert!(
            batch
                .column_by_name("boolean")
                .unwrap()
                .as_boolean()
                .value(0)
        );
    }
    let batch = read(
        SolutionFormat::Arrow,
        write(SolutionFormat::Arrow, &[], &[vec![], vec![]]),
    );
    assert_eq!(batch.num_rows(), 2);
    let mut out = Vec::new();
    let mut serializer = SolutionSerializer::start(SolutionFormat::Parquet, &[], &mut out);
    assert!(serializer.finish(&mut out).is_err());
}

#[test]
fn a_directory_that_is_not_there_is_told() {
    let mut out = Vec::new();
    let variables = ["a".to_owned()];
    let mut serializer = SolutionSerializer::start(SolutionFormat::Arrow, &variables, &mut out)
        .spill_to(Path::new("/nowhere/at/all"));
    let term = Term::string("x".repeat(100_000));
    let error = (0..100)
        .find_map(|_| serializer.row([Some(&term)].into_iter(), &mut out).err())
        .unwrap();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}
