//! Values of terms, and the operators on them.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `value` | a term read once, and the term that a value is |
//! | `decimal`, `exact` | the raw numbers of decimals; integers and decimals of any size |
//! | `of_terms` | the values of terms, ids and literals |
//! | `operator`, `arithmetic` | `+ - * /` and the signs |
//! | `compare` | `=` and `<` |
//! | `sort_key` | bytes that sort as `ORDER BY` does |

pub(crate) mod arithmetic;
pub(crate) mod compare;
pub(crate) mod decimal;
pub(crate) mod exact;
pub(crate) mod of_terms;
pub(crate) mod operator;
pub(crate) mod sort_key;
pub(crate) mod value;

pub use operator::Arithmetic;
pub use value::Value;
