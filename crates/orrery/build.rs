//! What the linker is asked for, in `orrery`, and in `orrery-bench`, whose build script this is too. Only in programs that are
//! optimized, and each only where the linker takes it: the program is the same without.
//!
//! - To lay the functions that queries spend their time in side by side (`function-order.ld`, which `make function-order`
//!   writes): short queries take a tenth longer without. The linkers of GNU and LLVM can, mold cannot.
//! - To keep one of functions whose code is the same (LLVM's). Copies of them are in many units of code generation. No code of
//!   ours compares addresses of functions, and Rust promises nothing about them.
//! - To note in a short form which addresses are to be set when the program starts, where the system's loader reads that
//!   (glibc 2.36): tables of methods have hundreds of thousands.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The linker's list, from the folder of either package.
const ORDER: &str = "../../crates/orrery/function-order.ld";
/// Options of LLVM's linker, and of GNU's as far as it has them.
const SMALLER: [&str; 2] = ["-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"];

fn main() {
    println!("cargo::rerun-if-changed={ORDER}");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // Nobody knows what another linker takes.
    let own_linker = env::var_os("RUSTC_LINKER").is_some() || flags.contains("mold");
    if is("OPT_LEVEL", "0")
        || !is("CARGO_CFG_TARGET_OS", "linux")
        || !is("CARGO_CFG_TARGET_ENV", "gnu")
        || own_linker
    {
        return;
    }
    let folder = |name: &str| env::var_os(name).map_or_else(PathBuf::new, PathBuf::from);
    let out = folder("OUT_DIR");
    // The package has the name of its program.
    let program = env::var("CARGO_PKG_NAME").unwrap_or_default();
    // Beside what is built, which clones may share that come and go.
    let order = out.join("function-order.ld");
    match fs::copy(folder("CARGO_MANIFEST_DIR").join(ORDER), &order) {
        Ok(_) => println!("cargo::rustc-link-arg-bin={program}=-T{}", order.display()),
        Err(error) => println!("cargo::warning={ORDER}: {error}; the program is slower without"),
    }
    for option in SMALLER {
        if is_taken(option, &out) {
            println!("cargo::rustc-link-arg-bin={program}={option}");
        }
    }
}

/// Whether a program that is linked with an option can be made and runs here.
fn is_taken(option: &str, out: &Path) -> bool {
    // Elsewhere nobody can say whether it runs.
    if env::var("HOST") != env::var("TARGET") {
        return false;
    }
    let (source, program) = (out.join("asked.rs"), out.join("asked"));
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    fs::write(&source, "fn main() {}").is_ok()
        && succeeds(
            Command::new(compiler)
                .arg("-Copt-level=1")
                .arg(format!("-Clink-arg={option}"))
                .arg("-o")
                .args([&program, &source]),
        )
        && succeeds(&mut Command::new(&program))
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
