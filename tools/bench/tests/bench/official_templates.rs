//! Tests of the official query templates (`ORRERY_SHARED`) with generated parameters.

#![allow(clippy::expect_used)] // A test that cannot read its data has failed.

use std::path::PathBuf;

use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::templates::{EXPLORE, EXPLORE_MIX, instantiate, parameter_names};
use orrery_bsbm::{Catalog, GenerateOptions, Random};

fn explore_folder() -> Option<PathBuf> {
    let shared =
        std::env::var_os("ORRERY_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let folder = shared.join("bsbm/queries/explore");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: {} is not there", folder.display());
    None
}

#[test]
fn official_templates_have_the_parameters_of_ours() {
    let Some(folder) = explore_folder() else {
        return;
    };
    let pool =
        ParameterPool::from_catalog(&Catalog::new(&GenerateOptions::default())).expect("a pool");
    for ours in EXPLORE {
        let path = folder.join(format!("query{}.txt", ours.number));
        let official = std::fs::read_to_string(path).expect("a template");
        let mut names = parameter_names(&official);
        let set = pool
            .draw_for(ours.number, &names, &mut Random::new(1))
            .expect("known parameters");
        let text = instantiate(&official, &set.values).expect("all parameters");
        assert!(!text.contains('%'), "{text}");
        assert_eq!(
            set,
            pool.draw(ours.number, &mut Random::new(1))
                .expect("the same parameters")
        );
        let mut our_names = parameter_names(ours.text);
        names.sort_unstable();
        our_names.sort_unstable();
        assert_eq!(names, our_names, "query {}", ours.number);
    }
}

#[test]
fn the_mix_is_the_official_one() {
    let Some(folder) = explore_folder() else {
        return;
    };
    let official = std::fs::read_to_string(folder.join("querymix.txt")).expect("the mix");
    let official: Vec<u8> = official
        .split_whitespace()
        .map(|n| n.parse().expect("a number"))
        .collect();
    assert_eq!(official, EXPLORE_MIX);
}
