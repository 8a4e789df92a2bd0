//! Tests of every target with its seeds, and with slightly damaged ones.

#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use orrery_fuzzing::targets;

/// Damaged texts for each seed, if `ORRERY_DAMAGED` says no other number. With it, the target that
/// `ORRERY_FUZZ_TARGET` names may be run alone.
const DAMAGED: u64 = 60;

fn number_of_damaged() -> u64 {
    let text = std::env::var("ORRERY_DAMAGED").ok();
    text.map_or(DAMAGED, |text| text.parse().unwrap())
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut paths: Vec<_> = std::fs::read_dir(directory.join(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let seeds = paths.iter().map(|path| std::fs::read(path).unwrap());
    seeds.collect()
}

/// Numbers that are always the same (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }
}

/// One piece changed, doubled, left out, or moved to the end.
fn damaged(seed: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let start = numbers.below(seed.len());
    let end = start + numbers.below((seed.len() - start).min(40) + 1);
    let (before, piece, after) = (&seed[..start], &seed[start..end], &seed[end..]);
    match numbers.below(5) {
        0 => [before, after].concat(),
        1 => [before, piece, piece, after].concat(),
        2 => [before, after, piece].concat(),
        3 => [before, &[numbers.below(256) as u8], after].concat(),
        _ => before.to_vec(),
    }
}

#[test]
fn every_target_takes_its_seeds_and_damaged_ones() {
    let only = std::env::var("ORRERY_FUZZ_TARGET").ok();
    let damages = number_of_damaged();
    for target in targets() {
        if only.as_ref().is_some_and(|only| only != target.name) {
            continue;
        }
        let seeds = seeds(target.name);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        let mut numbers = Numbers(1);
        (target.run)(b"");
        for seed in &seeds {
            (target.run)(seed);
            let mut bytes = seed.clone();
            for _ in 0..damages {
                bytes = damaged(&bytes, &mut numbers);
                (target.run)(&bytes);
                if bytes.len() < seed.len() / 2 {
                    bytes = seed.clone();
                }
            }
        }
        println!(
            "{}: {} texts",
            target.name,
            1 + seeds.len() as u64 * (1 + damages)
        );
    }
}
