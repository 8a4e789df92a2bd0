//! Cost paths of the vector codecs, each on data of its shape.

use orrery_column::{Codec, VECTOR_ROWS, decode, encode};

use super::path::CostPath;
use crate::Error;

/// Numbers without order; always the same ones.
pub(super) fn scrambled(n: u64) -> u64 {
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

/// What the table calls decoding and encoding, the codec, and the value of each row.
type Shape = (&'static str, &'static str, Codec, fn(u64) -> u64);

const SHAPES: [Shape; 6] = [
    (
        "column decode constant",
        "column encode constant",
        Codec::Constant,
        |_| 7,
    ),
    (
        "column decode frame",
        "column encode frame",
        Codec::Frame,
        |n| scrambled(n) % 3_000_000,
    ),
    (
        "column decode delta",
        "column encode delta",
        Codec::Delta,
        |n| 900 * n + scrambled(n) % 900,
    ),
    (
        "column decode runs",
        "column encode runs",
        Codec::Runs,
        |n| n / 10 * 3,
    ),
    (
        "column decode dictionary",
        "column encode dictionary",
        Codec::Dictionary,
        |n| scrambled(n % 23),
    ),
    (
        "column decode groups",
        "column encode groups",
        Codec::Groups,
        mixed_objects,
    ),
];

pub(super) fn paths<'f>() -> Vec<CostPath<'f>> {
    let mut paths = Vec::new();
    for (decoding, encoding, codec, number) in SHAPES {
        let values: Vec<u64> = (0..VECTOR_ROWS as u64).map(number).collect();
        let mut bytes = Vec::new();
        encode(&values, &mut bytes);
        let mut out = Box::new([0; VECTOR_ROWS]);
        paths.push(CostPath::new(decoding, move || {
            let rows = decode(std::hint::black_box(&bytes), &mut out);
            ensure(rows == Ok(VECTOR_ROWS), "a vector was not decoded")
        }));
        let mut bytes = Vec::with_capacity(2 * VECTOR_ROWS * size_of::<u64>());
        paths.push(CostPath::new(encoding, move || {
            bytes.clear();
            let chosen = encode(std::hint::black_box(&values), &mut bytes);
            ensure(chosen == codec, "another codec was chosen")
        }));
    }
    paths
}

/// A path that did not do its work must not give a figure.
pub(super) fn ensure(is_so: bool, otherwise: &str) -> Result<(), Error> {
    match is_so {
        true => Ok(()),
        false => Err(Error::Syntax(otherwise.to_owned())),
    }
}
