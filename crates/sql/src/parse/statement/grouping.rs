//! The count of a SELECT's grouping sets, before the planner expands them.
//!
//! A row belongs to one group of each set, so the sets multiply the groups that an aggregation
//! holds. `GROUP BY a, CUBE (b, c), ROLLUP (d)` is 4 times 2 sets. The bounds and their words are
//! PostgreSQL's.

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select};

use crate::{Error, Result, SqlState};

/// Elements of one CUBE, which has a set for each subset of them.
const CUBE_ELEMENTS_MAX: usize = 12;
/// Sets of one GROUP BY.
const GROUPING_SETS_MAX: usize = 4_096;

/// Refuses a SELECT with a larger CUBE (54011) or with more sets (54001).
pub(super) fn refuse_many_sets(select: &Select) -> Result<()> {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return Ok(());
    };
    let mut sets = 1_usize;
    for key in keys {
        let of_key = match key {
            Expr::Cube(elements) if elements.len() > CUBE_ELEMENTS_MAX => {
                return Err(Error::new(
                    SqlState::TooManyColumns,
                    format!("CUBE is limited to {CUBE_ELEMENTS_MAX} elements"),
                ));
            }
            Expr::Cube(elements) => 1 << elements.len(),
            Expr::Rollup(elements) => elements.len() + 1,
            Expr::GroupingSets(listed) => listed.len().max(1),
            _ => 1,
        };
        sets = sets.saturating_mul(of_key);
    }
    if sets > GROUPING_SETS_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            format!("too many grouping sets present (maximum {GROUPING_SETS_MAX})"),
        ));
    }
    Ok(())
}
