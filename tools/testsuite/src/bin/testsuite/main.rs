//! The long forms of the tests, as commands. One program, because each would take as long to link
//! as all of them.
//!
//! ```text
//! testsuite conformance [NAME]      the suites of the W3C; writes docs/conformance.md
//! testsuite oracle [OPTIONS]        random queries, updates and texts against independent evaluators
//! testsuite explore-golden          writes golden/explore.json
//! ```

mod conformance;
mod explore_golden;
mod oracle;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("conformance") => conformance::main(arguments.next()),
        Some("oracle") => oracle::main(arguments),
        Some("explore-golden") => explore_golden::main(),
        _ => {
            eprintln!("usage: testsuite conformance [NAME] | oracle [OPTIONS] | explore-golden");
            ExitCode::FAILURE
        }
    }
}
