//! Benchmark of each codec on data of its shape: `cargo bench -p orrery-column`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use orrery_column::{Codec, VECTOR_ROWS, decode, encode};

fn scrambled(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8
}

/// Ranks of literals, numbers, dates and IRIs in turns, as the objects of a subject are.
fn mixed_objects(n: u64) -> u64 {
    match scrambled(n) % 5 {
        0 => (2 << 60) | (scrambled(n) % 300_000),
        1 => (6 << 60) | ((scrambled(n) % 2000) << 4),
        2 => (12 << 60) | ((scrambled(n) % 60_000_000) << 12),
        _ => (3 << 60) | (scrambled(n) % 2_000_000),
    }
}

/// A name, the codec that should be chosen, and the value of each row.
type Shape = (&'static str, Codec, fn(u64) -> u64);

fn codecs(criterion: &mut Criterion) {
    let shapes: [Shape; 6] = [
        ("constant", Codec::Constant, |_| 7),
        ("frame", Codec::Frame, |n| scrambled(n) % 3_000_000),
        ("delta", Codec::Delta, |n| 900 * n + scrambled(n) % 900),
        ("runs", Codec::Runs, |n| n / 10 * 3),
        ("dictionary", Codec::Dictionary, |n| scrambled(n % 23)),
        ("groups", Codec::Groups, mixed_objects),
    ];
    let mut group = criterion.benchmark_group("column");
    group.throughput(Throughput::Elements(VECTOR_ROWS as u64));
    for (name, codec, number) in shapes {
        let values: Vec<u64> = (0..VECTOR_ROWS as u64).map(number).collect();
        let mut bytes = Vec::new();
        assert_eq!(encode(&values, &mut bytes), codec);
        group.bench_function(format!("decode/{name}"), |bencher| {
            let mut out = [0; VECTOR_ROWS];
            bencher.iter(|| decode(black_box(&bytes), &mut out));
        });
        group.bench_function(format!("encode/{name}"), |bencher| {
            bencher.iter(|| {
                bytes.clear();
                encode(black_box(&values), &mut bytes)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, codecs);
criterion_main!(benches);
