//! Writing the answer of a SELECT: ours and `sparesults`, beside each other, in all text formats.
//!
//! `cargo bench -p orrery-formats --bench solutions`; the rates are terms a second.

#![expect(clippy::unwrap_used, reason = "a bench stops at the first failure")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use orrery_formats::{SolutionFormat, SolutionSerializer};
use orrery_sparql::term_to_oxrdf;
use orrery_term::Term;
use orrery_term::vocabulary::xsd;
use sparesults::{QueryResultsFormat, QueryResultsSerializer};

const ROWS: usize = 10_000;
const VARIABLES: [&str; 4] = ["product", "label", "value", "text"];

const FORMATS: [(SolutionFormat, QueryResultsFormat); 4] = [
    (SolutionFormat::Json, QueryResultsFormat::Json),
    (SolutionFormat::Xml, QueryResultsFormat::Xml),
    (SolutionFormat::Csv, QueryResultsFormat::Csv),
    (SolutionFormat::Tsv, QueryResultsFormat::Tsv),
];

/// An IRI, a label, a number, and prose, of which each fourth needs quotes.
fn row(number: usize) -> [Term<'static>; 4] {
    let mark = if number.is_multiple_of(4) {
        ", \"so\""
    } else {
        ""
    };
    [
        Term::iri(format!(
            "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/dataFromProducer42/Product{number}"
        )),
        Term::string("cajole warbling expounders"),
        Term::typed(number.to_string(), xsd::INTEGER),
        Term::string(format!(
            "foretasted bannocks yawped unrifled{mark} pistoling overindulge raptness outfitted dilators {number}"
        )),
    ]
}

fn ours(format: SolutionFormat, rows: &[[Term<'static>; 4]], out: &mut Vec<u8>) {
    let variables = VARIABLES.map(str::to_owned);
    let mut serializer = SolutionSerializer::start(format, &variables, out);
    for row in rows {
        serializer.row(row.iter().map(Some), out).unwrap();
    }
    while !serializer.finish(out).unwrap() {}
}

fn theirs(format: QueryResultsFormat, rows: &[[oxrdf::Term; 4]], out: Vec<u8>) -> Vec<u8> {
    let variables = VARIABLES.map(oxrdf::Variable::new_unchecked);
    let mut writer = QueryResultsSerializer::from_format(format)
        .serialize_solutions_to_writer(out, variables.to_vec())
        .unwrap();
    for row in rows {
        writer.serialize(variables.iter().zip(row)).unwrap();
    }
    writer.finish().unwrap()
}

fn benches(criterion: &mut Criterion) {
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    let oxrdf_rows: Vec<_> = rows
        .iter()
        .map(|row| row.each_ref().map(term_to_oxrdf))
        .collect();
    let mut group = criterion.benchmark_group("solutions");
    group.throughput(Throughput::Elements((ROWS * VARIABLES.len()) as u64));
    for (format, oxrdf_format) in FORMATS {
        let mut out = Vec::new();
        group.bench_function(format!("{}, ours", format.name()), |bencher| {
            bencher.iter(|| {
                out.clear();
                ours(format, &rows, &mut out);
                black_box(out.len())
            });
        });
        let mut out = Vec::new();
        group.bench_function(format!("{}, sparesults", format.name()), |bencher| {
            bencher.iter(|| {
                out.clear();
                out = theirs(oxrdf_format, &oxrdf_rows, std::mem::take(&mut out));
                black_box(out.len())
            });
        });
    }
    group.finish();
}

criterion_group!(solutions, benches);
criterion_main!(solutions);
