//! The program that measures hot paths: instructions under callgrind, and allocations.
//!
//! ```text
//! costs prepare DIR                 makes the data
//! costs names DIR                   the paths, in the order in which `measure` runs them
//! costs measure DIR                 runs every path; to be run by valgrind, see scripts/instructions.sh
//! costs allocations DIR             the table of allocations
//! costs collect DIR DUMPS           the table of instructions, from the files DUMPS.1, DUMPS.2, ... of callgrind
//! costs compare KEPT NOW PERCENT    what differs by more; fails if a path got dearer
//! ```

use std::path::Path;
use std::process::ExitCode;

use orrery_testsuite::Error;
use orrery_testsuite::costs::{
    CountingAllocator, Fixture, Table, Tolerance, allocation_table, paths,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Small paths may jump by so many instructions.
const INSTRUCTIONS_BESIDES: u64 = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["prepare", directory] => Fixture::prepare(Path::new(directory)).map(|()| true),
        ["names", directory] => names(Path::new(directory)),
        ["measure", directory] => measure(Path::new(directory)),
        ["allocations", directory] => allocations(Path::new(directory)),
        ["collect", directory, dumps] => collect(Path::new(directory), dumps),
        ["compare", kept, now, percent] => compare(Path::new(kept), Path::new(now), percent),
        _ => Err(Error::Syntax(
            "usage: costs prepare|names|measure|allocations|collect|compare; see its source"
                .to_owned(),
        )),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("costs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn names(directory: &Path) -> Result<bool, Error> {
    for path in paths(&Fixture::open(directory)?)? {
        println!("{}", path.name);
    }
    Ok(true)
}

fn measure(directory: &Path) -> Result<bool, Error> {
    for mut path in paths(&Fixture::open(directory)?)? {
        path.measure()?;
    }
    Ok(true)
}

fn allocations(directory: &Path) -> Result<bool, Error> {
    print!("{}", allocation_table(&Fixture::open(directory)?)?);
    Ok(true)
}

/// Callgrind writes one dump each time a path has been measured, in their order.
fn collect(directory: &Path, dumps: &str) -> Result<bool, Error> {
    let mut table = Table::new(&[
        "Instructions of one run of each path, counted by callgrind (`make instructions`).",
        "`make instructions-accept` writes this file.",
    ]);
    let fixture = Fixture::open(directory)?;
    for (number, path) in (1..).zip(paths(&fixture)?) {
        let file = format!("{dumps}.{number}");
        let text = read(Path::new(&file))?;
        let count = text.lines().find_map(|line| {
            let totals = line.strip_prefix("totals: ")?;
            totals.trim().parse::<u64>().ok()
        });
        let count = count.ok_or_else(|| Error::Syntax(format!("{file}: no totals")))?;
        table.set(path.name, &[count]);
    }
    print!("{table}");
    Ok(true)
}

fn compare(kept: &Path, now: &Path, percent: &str) -> Result<bool, Error> {
    let percent = percent
        .parse()
        .map_err(|_| Error::Syntax(format!("`{percent}` is not a number of percent")))?;
    let tolerance = Tolerance {
        percent,
        besides: INSTRUCTIONS_BESIDES,
    };
    let differences = Table::parse(&read(kept)?).differences(&Table::parse(&read(now)?), tolerance);
    for difference in &differences {
        println!("{difference}");
    }
    Ok(!differences.iter().any(|difference| difference.is_failure()))
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Io {
        path: path.to_owned(),
        source,
    })
}
