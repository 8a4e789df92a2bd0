//! Tests on small invented crates, with and without cycles.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::arrows;
use crate::knots::{self, Knot};
use crate::source;

/// The knots of a crate with these files; `lib.rs` is the root.
fn knots_of(files: &[(&str, &str)]) -> Vec<Knot> {
    let files: BTreeMap<PathBuf, &str> = files
        .iter()
        .map(|(path, text)| (PathBuf::from(path), *text))
        .collect();
    let read = |path: &Path| {
        files
            .get(path)
            .map(|text| (*text).to_owned())
            .ok_or(std::io::ErrorKind::NotFound.into())
    };
    let tree = source::read(Path::new("lib.rs"), &read).expect("sources");
    knots::of(&arrows::of(&tree))
}

/// The members of the only knot.
fn members(files: &[(&str, &str)]) -> Vec<String> {
    let knots = knots_of(files);
    assert_eq!(knots.len(), 1, "{knots:?}");
    knots.into_iter().flat_map(|knot| knot.members).collect()
}

fn assert_none(files: &[(&str, &str)]) {
    let knots = knots_of(files);
    assert!(knots.is_empty(), "{knots:?}");
}

#[test]
fn two_files_that_import_each_other_are_a_knot_with_its_names() {
    let knots = knots_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        (
            "a.rs",
            "use crate::b::{make, Made as Other}; pub struct Part; fn f() -> Other { make() }",
        ),
        (
            "b.rs",
            "use crate::a::Part; pub struct Made(Part); pub fn make() -> Made { todo!() }",
        ),
        ("c.rs", "use crate::a::Part; fn f(_: Part) {}"),
    ]);
    assert_eq!(knots.len(), 1);
    assert_eq!(knots[0].members, ["a.rs", "b.rs"]);
    assert_eq!(
        knots[0].arrows[0],
        (
            "a.rs".into(),
            "b.rs".into(),
            vec!["Made".into(), "make".into()]
        )
    );
    assert_eq!(
        knots[0].arrows[1],
        ("b.rs".into(), "a.rs".into(), vec!["Part".into()])
    );
    assert!(
        knots[0]
            .to_string()
            .contains("  a.rs -> b.rs: Made, make\n")
    );
}

#[test]
fn imports_one_way_are_none() {
    assert_none(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::{b::B, c::C}; fn f(_: B, _: C) {}"),
        ("b.rs", "use crate::c::C; pub struct B(C);"),
        ("c.rs", "pub struct C;"),
    ]);
}

#[test]
fn a_parent_that_declares_and_hands_on_is_none() {
    assert_none(&[
        (
            "lib.rs",
            "mod room; pub use room::{Left, Right}; pub use room::*;",
        ),
        (
            "room/mod.rs",
            "mod left; mod right; pub use left::Left; pub(crate) use right::*;",
        ),
        ("room/left.rs", "use crate::Right; pub struct Left(Right);"),
        ("room/right.rs", "pub struct Right;"),
    ]);
}

#[test]
fn a_re_export_is_followed_to_the_file_that_defines_it() {
    let files = [
        ("lib.rs", "mod a; mod b; mod face;"),
        ("face.rs", "pub use crate::a::A; pub use crate::b::*;"),
        ("a.rs", "use crate::face::B; pub struct A(B);"),
        ("b.rs", "use crate::face::A; pub struct B(Box<A>);"),
    ];
    assert_eq!(members(&files), ["a.rs", "b.rs"]);
}

#[test]
fn a_parent_that_uses_a_child_which_uses_the_parent_is_one() {
    let files = [
        ("lib.rs", "mod room;"),
        (
            "room/mod.rs",
            "mod child; pub struct Whole; pub fn all() { child::part() }",
        ),
        (
            "room/child.rs",
            "use super::Whole; pub fn part() { let _ = Whole; }",
        ),
    ];
    assert_eq!(members(&files), ["room/mod.rs", "room/child.rs"]);
}

#[test]
fn a_re_export_that_the_parent_itself_uses_is_an_arrow() {
    let files = [
        ("lib.rs", "mod room;"),
        (
            "room.rs",
            "mod child; pub use child::Part; pub struct Whole(Part);",
        ),
        (
            "room/child.rs",
            "pub struct Part; fn f() -> super::Whole { todo!() }",
        ),
    ];
    assert_eq!(members(&files), ["room.rs", "room/child.rs"]);
}

#[test]
fn a_glob_takes_only_what_is_used() {
    let parent = (
        "room/mod.rs",
        "mod child; pub struct Whole; pub struct Other; fn f() { child::part() }",
    );
    let using = "use super::*; pub fn part() -> Whole { Whole }";
    let not_using = "use super::*; pub fn part() -> Own { Own } pub struct Own;";
    assert_eq!(
        members(&[("lib.rs", "mod room;"), parent, ("room/child.rs", using)]).len(),
        2
    );
    assert_none(&[
        ("lib.rs", "mod room;"),
        parent,
        ("room/child.rs", not_using),
    ]);
}

#[test]
fn bare_paths_and_those_within_macros_count() {
    let b = ("b.rs", "pub fn two() { assert!(crate::a::one() == 1) }");
    assert_eq!(
        members(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub fn one() -> u8 { crate::b::two(); 1 }"),
            b
        ])
        .len(),
        2
    );
    assert_eq!(
        members(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b; pub fn one() { vec![b::two()]; }"),
            b
        ])
        .len(),
        2
    );
    assert_none(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b; pub fn one() { x.b.two() }"),
        ("b.rs", "pub fn two() {}"),
    ]);
}

#[test]
fn a_macro_of_another_file_counts() {
    let files = [
        ("lib.rs", "#[macro_use] mod a; mod b;"),
        ("a.rs", "macro_rules! made { () => { $crate::b::make() } }"),
        ("b.rs", "pub fn make() {} fn f() { made!() }"),
    ];
    assert_eq!(members(&files), ["a.rs", "b.rs"]);
}

#[test]
fn what_a_macro_defines_is_taken_from_the_file_that_calls_it() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "macro_rules! define { ($n:ident) => { pub struct $n; } } define!(Made); use crate::b::B; fn f(_: B) {}",
        ),
        ("b.rs", "use crate::a::Made; pub struct B(Made);"),
    ];
    assert_eq!(members(&files), ["a.rs", "b.rs"]);
}

#[test]
fn tests_do_not_count() {
    assert_none(&[
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod tests;"),
        (
            "a.rs",
            "use crate::b::B; pub struct A(B); #[cfg(all(test, unix))] mod tests { use super::*; }",
        ),
        (
            "b.rs",
            "pub struct B; #[cfg(test)] use crate::a::A; #[cfg(test)] mod tests { use crate::a::A; fn f(_: A) {} } #[test] fn g() { crate::a::A; }",
        ),
    ]);
    let counted = ("b.rs", "pub struct B; #[cfg(not(test))] use crate::a::A;");
    assert_eq!(
        members(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            counted
        ])
        .len(),
        2
    );
}

#[test]
fn a_variable_with_the_name_of_a_function_is_no_path() {
    assert_none(&[
        ("lib.rs", "mod room;"),
        (
            "room/mod.rs",
            "mod child; pub use child::compile; pub struct Whole; fn f(compile: u8) -> u8 { compile }",
        ),
        (
            "room/child.rs",
            "use super::Whole; pub fn compile() { let _ = Whole; }",
        ),
    ]);
}

#[test]
fn a_knot_may_go_through_several_files_and_a_block_is_in_its_file() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub mod inner { pub struct A(crate::b::B); }"),
        ("b.rs", "pub struct B(crate::c::C);"),
        (
            "c.rs",
            "fn f() { use super::a::inner::A; let _: A; } pub struct C;",
        ),
    ];
    assert_eq!(members(&files), ["a.rs", "b.rs", "c.rs"]);
}

#[test]
fn imports_that_lead_to_each_other_come_to_an_end() {
    assert_none(&[
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "pub use crate::b::*; pub use crate::b::x; fn f() { x(); nothing(); }",
        ),
        (
            "b.rs",
            "pub use crate::a::*; pub use crate::a::x; fn f() { nothing(); }",
        ),
    ]);
}

#[test]
fn a_module_without_a_file_is_an_error() {
    let read = |path: &Path| {
        if path == Path::new("lib.rs") {
            Ok("mod a;".to_owned())
        } else {
            Err(std::io::ErrorKind::NotFound.into())
        }
    };
    let error = source::read(Path::new("lib.rs"), &read).expect_err("no file");
    assert_eq!(error.to_string(), "lib.rs: no file for `mod a;`");
}

#[test]
fn paths_that_are_not_there_are_found_in_documents_and_comments() {
    let mut named = crate::paths::Named::default();
    for path in ["crates/a/src/b/c.rs", "crates/a/src/d.rs", "docs/e.md"] {
        named.add(path);
    }
    for right in [
        "`crates/a/src/b/`, `crates/a/src/{b,d.rs}`, `src/{b/c,d}.rs`, `crates/*/src`",
        "`b/c.rs`, `c.rs`, `x.rs`, `a/x.md`, a/x.rs, `the a/x.rs`, `docs/x`",
    ] {
        assert!(named.missing_in(right, false).is_empty(), "{right}");
    }
    let wrong = "`crates/a/src/x`\n`crates/{a,x}`, `a/c.rs`, `src/{d,x}.rs`";
    let missing = [
        (1_usize, "crates/a/src/x"),
        (2, "crates/x"),
        (2, "a/c.rs"),
        (2, "src/x.rs"),
    ];
    let missing = missing.map(|(line, path)| (line, path.to_owned()));
    assert_eq!(named.missing_in(wrong, false), missing);
    let code = "let a = \"`x/y.rs`\"; // `x/y.rs`\n    /// As `x/z.rs`.";
    assert_eq!(named.missing_in(code, true), [(2, "x/z.rs".to_owned())]);
}
