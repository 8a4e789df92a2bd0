//! Benchmark of parsing and interning N-Triples, in bytes per second:
//! `cargo bench -p orrery-loader --bench ntriples`.

use std::fmt::Write;
use std::hint::black_box;
use std::io::Cursor;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use orrery_loader::{DocumentBounds, Format, read_document};

const STATEMENTS: u64 = 20_000;
const MEMORY_BYTES: usize = 256 << 20;

/// Statements as shops have them: few predicates, IRIs that repeat, numbers, dates, and text.
fn shop() -> String {
    let mut text = String::new();
    for n in 0..STATEMENTS {
        let (subject, predicate) = (n / 5, n % 5);
        let _ = write!(
            text,
            "<http://example.com/products/{subject}> <http://example.com/terms/p{predicate}> "
        );
        let _ = match predicate {
            0 => writeln!(text, "<http://example.com/makers/{}> .", subject % 97),
            1 => writeln!(
                text,
                "\"{}\"^^<http://www.w3.org/2001/XMLSchema#integer> .",
                n % 2000
            ),
            2 => writeln!(
                text,
                "\"2008-0{}-17\"^^<http://www.w3.org/2001/XMLSchema#date> .",
                1 + n % 9
            ),
            3 => writeln!(text, "\"product number {subject}\"@en ."),
            _ => writeln!(
                text,
                "\"a longer text, of which there is one for each of them: {n}\" ."
            ),
        };
    }
    text
}

/// The same with escapes in every literal and IRI.
fn escaped(text: &str) -> String {
    text.replace("product", "produ\\u0063t")
        .replace("longer", "lo\\tnger")
}

fn benches(criterion: &mut Criterion) {
    let plain = shop();
    let mut group = criterion.benchmark_group("n-triples");
    for (name, text) in [("plain", plain.clone()), ("escaped", escaped(&plain))] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let input = Cursor::new(text.clone().into_bytes());
                let bounds = DocumentBounds {
                    memory_bytes: MEMORY_BYTES,
                    hold: &mut |_| true,
                    waiting: None,
                };
                let document = read_document(input, name, Format::NTriples, None, bounds);
                assert!(
                    document.is_ok_and(|document| black_box(document).quads().next().is_some())
                );
            });
        });
    }
    group.finish();
}

criterion_group!(ntriples, benches);
criterion_main!(ntriples);
