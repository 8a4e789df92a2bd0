//! External test data, found through `ORRERY_SHARED`, or `../shared` beside the clone. Nothing of
//! it is copied into the project.

use std::path::{Path, PathBuf};

/// The path of a file of the shared test data; `None`, saying so on standard error,
/// where it is not there: the caller's test then skips.
pub fn find(relative: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("ORRERY_SHARED") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    let path = root.join(relative);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "skipped: {} is not there (set ORRERY_SHARED to the shared test data)",
        path.display()
    );
    None
}
