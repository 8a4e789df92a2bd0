//! The translation of `LATERAL` (SPARQL-dev SEP-0006).
//!
//! Where that changes nothing but which solutions join, it is a join, and is planned as any other
//! ([`depends_on_row`]).

use spargebra::algebra::GraphPattern;

use super::{Normaliser, PatternPlace};
use crate::algebra::{Group, asks_limited, depends_on_row};
use crate::error::{QueryError, Result};

impl Normaliser<'_> {
    pub(super) fn lateral(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut group = self.graph_by_graph_left(left, place)?;
        let inside = PatternPlace {
            outer: place.outer.union(&group.visible),
            ..place.clone()
        };
        let right = self.pattern(right, &inside)?;
        let row = group.visible.union(&place.outer);
        if asks_limited(&right, &row) {
            return Err(QueryError::unsupported(
                "a SERVICE inside of LATERAL whose pattern has LIMIT, OFFSET or an aggregate, which would have to be asked once for each \
                 solution; put the LATERAL into the SERVICE",
            ));
        }
        let is_join = right.is_steady() && !depends_on_row(&right, &row, &self.table);
        if self.rewrites && is_join {
            return Ok(self.join(group, right));
        }
        group.lateral(right);
        Ok(group)
    }
}
