//! Has the linker lay the functions that queries spend their time in side by side (`function-order.ld`, which
//! `make function-order` writes), in `orrery`, and in `orrery-bench`, whose build script this is too.
//!
//! Only in programs that are optimized, and where the linker knows such a list: that of GNU and that of LLVM do, mold does not. The
//! program is the same without it, and takes a tenth longer over short queries.

use std::path::PathBuf;
use std::{env, fs};

/// The linker's list, from the folder of either package.
const ORDER: &str = "../../crates/orrery/function-order.ld";

fn main() {
    println!("cargo::rerun-if-changed={ORDER}");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // Nobody knows what another linker takes.
    let own_linker = env::var_os("RUSTC_LINKER").is_some() || flags.contains("mold");
    if is("OPT_LEVEL", "3")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && !own_linker
    {
        let folder = |name: &str| env::var_os(name).map_or_else(PathBuf::new, PathBuf::from);
        // Beside what is built, which clones may share that come and go.
        let order = folder("OUT_DIR").join("function-order.ld");
        // The package has the name of its program.
        let program = env::var("CARGO_PKG_NAME").unwrap_or_default();
        match fs::copy(folder("CARGO_MANIFEST_DIR").join(ORDER), &order) {
            Ok(_) => println!("cargo::rustc-link-arg-bin={program}=-T{}", order.display()),
            Err(error) => {
                println!("cargo::warning={ORDER}: {error}; the program is slower without")
            }
        }
    }
}
