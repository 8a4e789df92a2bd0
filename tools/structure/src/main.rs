//! The structure check of this source tree: `structure [--write] [DIRECTORY]`.
//!
//! ```text
//! Cargo.toml of each crate -> house     crates, what they are for, which they may import
//! src/**/*.rs -> source, names          modules, definitions, imports and paths of the code
//!             -> resolve                each path followed to the file that defines the item
//!             -> knots                  files (and crates) that import each other
//! tests/, Cargo.toml -> programs        test programs, and tests that none runs
//! ARCHITECTURE.md <-> drawing           crates, rooms and imports as they are
//! documents, comments -> paths          the files that they name
//! ```
//!
//! It ends with 1 when files import each other, when the drawing is not true, or when a named file
//! does not exist. Tests do not count. It cannot see methods: a call `a.b()` names no file, so a
//! circle by methods alone stays unseen, and names that a macro makes are looked for where the
//! macro is called.

mod arrows;
mod drawing;
mod error;
mod house;
mod knots;
mod names;
mod paths;
mod programs;
mod resolve;
mod source;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use error::Error;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("structure: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether the structure is as it must be.
fn run() -> Result<bool, Error> {
    let mut is_write = false;
    let mut directory = PathBuf::from(".");
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--write" => is_write = true,
            other if other.starts_with('-') => return Err(Error::UnknownOption(argument)),
            other => directory = PathBuf::from(other),
        }
    }
    let house = house::read(&directory)?;
    let mut knots = knots::of_crates(&house);
    let mut files = 0;
    for package in &house.packages {
        files += package.files.len();
        for arrows in &package.arrows {
            knots.extend(knots::of(arrows));
        }
    }
    for knot in &knots {
        println!("{knot}");
    }
    let mut faults = house::faults(&house);
    for folder in house::folders(&directory)? {
        faults.extend(programs::faults(&folder)?);
    }
    faults.extend(paths::faults(&directory)?);
    for fault in &faults {
        println!("{fault}");
    }
    let is_drawn = if is_write {
        drawing::write(&house, &directory)?
    } else {
        drawing::check(&house, &directory)?
    };
    if let Some(fault) = &is_drawn {
        println!("{fault}");
    }
    println!(
        "{} crates, {files} files, {} knots",
        house.packages.len(),
        knots.len()
    );
    Ok(knots.is_empty() && faults.is_empty() && is_drawn.is_none())
}
