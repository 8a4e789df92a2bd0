//! Operators over id columns, which read each distinct value at most once, and only where ids do
//! not suffice.
//!
//! | file | what it does |
//! | --- | --- |
//! | `column` | columns of ids, truth values, plain numbers and values, and the ways between them |
//! | `compare_columns`, `compare_alike` | `=` and `<`; of ids that are all of one kind |
//! | `inline_arithmetic`, `plain_numbers` | arithmetic on ids with the number inside; on columns of floats and doubles |
//! | `lexical_numbers` | the numbers that literals of the dictionary say, read once for all queries |
//! | `membership` | `IN` a list of constants |
//! | `calendar` | parts of dates that stand in their ids |
//! | `triple` | triple terms and their parts |
//! | `id_sort_keys` | sort keys of ids |

pub(crate) mod calendar;
pub(crate) mod column;
pub(crate) mod compare_alike;
pub(crate) mod compare_columns;
pub(crate) mod id_sort_keys;
pub(crate) mod inline_arithmetic;
pub(crate) mod lexical_numbers;
pub(crate) mod membership;
pub(crate) mod plain_numbers;
pub(crate) mod triple;

pub use column::{Operand, Reading, intern_value, read_ids};
pub use id_sort_keys::{are_alike, order_alike, sort_key_of_alike, sort_keys_of_ids};
