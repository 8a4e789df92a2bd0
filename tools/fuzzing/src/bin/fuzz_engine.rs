//! The libFuzzer program for targets on the query engine, named by `ORRERY_FUZZ_TARGET`, within
//! this workspace.

#![no_main]

use libfuzzer_sys::fuzz_target;
use orrery_fuzzing::{Target, target_named};
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("ORRERY_FUZZ_TARGET").unwrap_or_default();
    match target_named(&name) {
        Some(target) => target,
        None => panic!("ORRERY_FUZZ_TARGET is `{name}`, which is no target"),
    }
});

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
