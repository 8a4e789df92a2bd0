//! SPARQL's functions over values.
//!
//! A function sees the values of its arguments for one row and gives a value or, as `None`,
//! SPARQL's error. All of them are strict: an error in an argument is an error of the call, so they
//! are only asked when every argument has a value. What is not strict (`IF`, `COALESCE`, `BOUND`,
//! logic) belongs to the expression tree.
//!
//! | file | functions |
//! | --- | --- |
//! | `string` | strings, with SPARQL's rules for language tags |
//! | `numeric` | rounding and absolute value |
//! | `datetime` | parts of dates and times |
//! | `hash` | digests |
//! | `term` | making and taking apart terms; random ones |
//! | `cast` | XML Schema casts, called by the datatype's IRI |
//! | `places` | GeoSPARQL's, by the geometry of `orrery_geo` |
//! | `regex` | REGEX and REPLACE |
//! | `kept_searches` | searches for texts that queries made last |
//! | `text_test` | REGEX, CONTAINS, STRSTARTS and STRENDS whose other arguments are constant |

mod cast;
mod datetime;
mod function;
mod hash;
mod kept_searches;
mod numeric;
mod places;
mod regex;
mod resolve;
mod string;
mod term;
mod text_test;

pub(crate) use function::{Implementation, PureFunction, ScalarFunction};
pub(crate) use places::call as call_places;
pub(crate) use resolve::resolve;
pub(crate) use text_test::TextTest;
