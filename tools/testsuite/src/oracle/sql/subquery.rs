//! Random subqueries as conditions and values.

use super::dual::{Kind, Sql};
use super::expression::{Visible, column, condition, value};
use super::grammar::Grammar;

impl Grammar<'_> {
    /// A condition, with subqueries among it.
    pub(super) fn filter(&mut self, scope: &[Visible], depth: usize) -> Sql {
        if depth == 0 || !self.random.chance(22) {
            return condition(self.random, scope, 2);
        }
        let part = self.subquery_condition(scope);
        match self.random.below(4) {
            0 => part,
            1 | 2 => Sql::of("{} and {}", &[&condition(self.random, scope, 1), &part]),
            _ => Sql::of("({} or {})", &[&condition(self.random, scope, 1), &part]),
        }
    }

    pub(super) fn subquery_condition(&mut self, scope: &[Visible]) -> Sql {
        let outer = &scope[self.random.below(scope.len())];
        let negated = Sql::same(if self.random.chance(35) { "not " } else { "" });
        match self.random.below(9) {
            0 | 4 => {
                let (sql, ..) = self.rows(0, &[], Some(outer.kind));
                Sql::of("{} {}in ({})", &[&outer.name, &negated, &sql])
            }
            5 => {
                let (sql, ..) = self.rows(0, &[], Some(outer.kind));
                let how = self.random.pick(&["= any", "<> all", "> all", "<= any"]);
                Sql::of("{} {} ({})", &[&outer.name, &Sql::same(how), &sql])
            }
            6..=8 => self.another_value(scope, &negated),
            1 => {
                let inner = self.relation(false, 0);
                let matched = self.equality(scope, &inner.scope);
                let more = condition(self.random, &inner.scope, 1);
                let on = match matched {
                    Some(matched) if self.random.chance(60) => {
                        Sql::of("{} and {}", &[&matched, &more])
                    }
                    Some(matched) => matched,
                    None => more,
                };
                Sql::of(
                    "{}exists (select 1 from {} where {})",
                    &[&negated, &inner.sql, &on],
                )
            }
            _ => {
                let sign = Sql::same(self.random.pick(&["=", "<", ">=", "<>"]));
                let kind = self
                    .random
                    .pick(&[Kind::Integer, Kind::Decimal, Kind::Text]);
                let scalar = self.scalar(scope, kind);
                let left = value(self.random, scope, kind, 0);
                Sql::of("{} {} {}", &[&left, &sign, &scalar])
            }
        }
    }

    /// Whether there is a row of the same key with another value, in the same table or in another
    /// one.
    pub(super) fn another_value(&mut self, scope: &[Visible], negated: &Sql) -> Sql {
        let inner = match self.random.chance(40) {
            true => self.largest(),
            false => self.relation(true, 0),
        };
        let kinds = [
            Kind::Integer,
            Kind::Decimal,
            Kind::Date,
            Kind::Time,
            Kind::Bound,
        ];
        let kind = self.random.pick(&kinds);
        let matched = self.equality(scope, &inner.scope);
        let outer = column(self.random, scope, kind);
        let other = column(self.random, &inner.scope, kind);
        let (Some(matched), Some(outer), Some(other)) = (matched, outer, other) else {
            let condition = condition(self.random, &inner.scope, 1);
            return Sql::of(
                "{}exists (select 1 from {} where {})",
                &[negated, &inner.sql, &condition],
            );
        };
        let mut sql = Sql::of(
            "{}exists (select 1 from {} where {} and {} <> {}",
            &[negated, &inner.sql, &matched, &other.name, &outer.name],
        );
        if self.random.chance(30) {
            let condition = condition(self.random, &inner.scope, 1);
            sql.push(&Sql::of(" and {}", &[&condition]));
        }
        sql.add(")");
        sql
    }

    /// One value out of a subquery, for each row perhaps another.
    pub(super) fn scalar(&mut self, scope: &[Visible], kind: Kind) -> Sql {
        let inner = self.relation(true, 0);
        let aggregate = match kind {
            Kind::Integer if self.random.chance(40) => {
                Sql::same(self.random.pick(&["count(*)", "count(1)"]))
            }
            _ => {
                let of = value(self.random, &inner.scope, kind, 0);
                Sql::of(self.random.pick(&["min({})", "max({})"]), &[&of])
            }
        };
        let mut sql = Sql::of("select {} from {}", &[&aggregate, &inner.sql]);
        let matched = self.equality(scope, &inner.scope);
        match matched {
            Some(matched) if self.random.chance(60) => sql.push(&Sql::of(" where {}", &[&matched])),
            _ => {
                let condition = condition(self.random, &inner.scope, 1);
                sql.push(&Sql::of(" where {}", &[&condition]));
            }
        }
        Sql::of("({})", &[&sql])
    }
}
