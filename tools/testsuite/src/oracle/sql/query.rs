//! Random SQL queries: kind, order and limit.
//!
//! An answer is one multiset, whoever computes it: a limit stands only behind an order by all
//! columns.

use super::dual::{Kind, Sql};
use super::expression::{Visible, column, condition, value};
use super::grammar::{Grammar, Part, named};
use super::tables::Spread;

/// Rows of an answer without aggregates over a large table.
const LIMIT_MAX: usize = 60;

/// A query and whether its rows have an order.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) sql: Sql,
    pub(super) is_ordered: bool,
    /// Rows at most.
    pub(super) limit: Option<usize>,
}

impl Grammar<'_> {
    /// A query.
    pub(super) fn query(&mut self) -> Query {
        let (sql, kinds, is_bounded) = match self.random.below(26) {
            0..=6 => self.rows(2, &[], None),
            7..=11 => self.groups(),
            12..=15 => self.few_groups(),
            16..=18 => self.windows(),
            19..=21 => self.set_operation(),
            22 => self.first_of_each(),
            23 => self.windows_of_groups(),
            _ => self.with_common_table(),
        };
        // Such doubles may differ in their last digits, so that other rows are equal.
        let is_rough = ["stddev_samp(", "var_pop(", "as double precision)"]
            .iter()
            .any(|name| sql.ours.contains(name));
        let is_ordered = !is_bounded || !is_rough && self.random.chance(40);
        if !is_ordered {
            return Query {
                sql,
                is_ordered,
                limit: None,
            };
        }
        let mut limit = None;
        let mut sql = sql;
        sql.push(&self.order(kinds.len()));
        if !is_bounded || self.random.chance(50) {
            let rows = self.random.below(LIMIT_MAX);
            limit = Some(rows);
            sql.add(&format!(" limit {rows}"));
            if self.random.chance(20) {
                sql.add(&format!(" offset {}", self.random.below(20)));
            }
        }
        Query {
            sql,
            is_ordered,
            limit,
        }
    }

    /// Rows without aggregates: the text, the kinds of its columns, and whether they are few
    /// enough. With kinds, these are the columns.
    pub(super) fn rows(&mut self, depth: usize, kinds: &[Kind], one: Option<Kind>) -> Part {
        let from = self.from(depth.min(1));
        let mut wanted: Vec<Kind> = kinds.to_vec();
        wanted.extend(one);
        if wanted.is_empty() {
            for _ in 0..1 + self.random.below(4) {
                wanted.push(from.scope[self.random.below(from.scope.len())].kind);
            }
        }
        let mut columns = Vec::new();
        for kind in &wanted {
            let column = match depth > 0 && *kind == Kind::Integer && self.random.chance(8) {
                true => self.scalar(&from.scope, *kind),
                false => {
                    let depth = self.random.below(3);
                    value(self.random, &from.scope, *kind, depth)
                }
            };
            columns.push(column);
        }
        let is_distinct = self.random.chance(20);
        let distinct = Sql::same(if is_distinct { "distinct " } else { "" });
        let mut sql = Sql::of(
            "select {}{} from {}",
            &[&distinct, &named(&columns), &from.sql],
        );
        if self.random.chance(75) {
            let filter = self.filter(&from.scope, depth);
            sql.push(&Sql::of(" where {}", &[&filter]));
        }
        (sql, wanted, !from.is_large)
    }

    pub(super) fn set_operation(&mut self) -> Part {
        let kinds: Vec<Kind> = (0..1 + self.random.below(3))
            .map(|_| self.random.pick(&Kind::ALL))
            .collect();
        let (mut sql, _, mut is_bounded) = self.rows(1, &kinds, None);
        for _ in 0..1 + self.random.below(2) {
            let operation = Sql::same(self.random.pick(&[
                "union",
                "union all",
                "intersect",
                "except",
                "intersect all",
                "except all",
            ]));
            let (mut next, _, mut is_next_bounded) = self.rows(1, &kinds, None);
            if self.random.chance(25) {
                // The rows of one table are often those of itself.
                next = sql.clone();
                is_next_bounded = is_bounded;
            }
            if self.random.chance(15) {
                next.push(&self.order(kinds.len()));
                next.add(" limit 7");
                is_next_bounded = true;
            }
            sql = match self.random.chance(80) {
                true => Sql::of("({}) {} ({})", &[&sql, &operation, &next]),
                false => Sql::of("({}) {} ({})", &[&next, &operation, &sql]),
            };
            is_bounded &= is_next_bounded;
        }
        (sql, kinds, is_bounded)
    }

    pub(super) fn with_common_table(&mut self) -> Part {
        if self.random.chance(25) {
            return self.counted_up();
        }
        let (common, kinds, is_bounded) = self.groups();
        debug_assert!(is_bounded);
        let names: Vec<Sql> = (0..kinds.len())
            .map(|at| Sql::same(format!("k{at}")))
            .collect();
        let scope = |name: &str| -> Vec<Visible> {
            let columns = kinds.iter().zip(&names).map(|(kind, column)| Visible {
                name: Sql::of("{}.{}", &[&Sql::same(name), column]),
                kind: *kind,
                spread: Spread::Few,
            });
            columns.collect()
        };
        let both = [scope("p"), scope("q")].concat();
        // Computed doubles may differ in their last digits.
        let exact = kinds.iter().rposition(|kind| *kind != Kind::Double);
        let on = match exact {
            Some(at) => Sql::of("{} = {}", &[&both[at].name, &both[kinds.len() + at].name]),
            None => Sql::same("true"),
        };
        let filter = condition(self.random, &both, 1);
        let columns: Vec<Sql> = both[..kinds.len()]
            .iter()
            .map(|it| it.name.clone())
            .collect();
        let columns = Sql::join(&columns, ", ");
        let sql = Sql::of(
            "with w({}) as ({}) select {} from w p left join w q on {} where {}",
            &[&Sql::join(&names, ", "), &common, &columns, &on, &filter],
        );
        (sql, kinds, false)
    }

    /// Rows that follow from one another, joined with a table.
    pub(super) fn counted_up(&mut self) -> Part {
        let inner = self.relation(true, 0);
        let by = column(self.random, &inner.scope, Kind::Integer).cloned();
        let by = by.map_or_else(|| Sql::same("1"), |it| it.name);
        let (aggregate, kind) = self.aggregate(&inner.scope);
        let until = Sql::same((1 + self.random.below(12)).to_string());
        let join = Sql::same(self.random.pick(&["join", "left join"]));
        let sql = Sql::of(
            "with recursive r(n) as (select 0 union all select n + 1 from r where n < {}) \
             select r.n as k0, {} as k1 from r {} {} on r.n = {} group by r.n",
            &[&until, &aggregate, &join, &inner.sql, &by],
        );
        (sql, vec![Kind::Integer, kind], true)
    }
}
