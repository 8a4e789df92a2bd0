//! Random window functions: ranks, neighbours, aggregates over frames. What depends on the order
//! within a window has one in which only equal rows are ties.

use super::super::random::Random;
use super::dual::{Kind, Sql};
use super::expression::{Visible, column, condition, value};
use super::grammar::{Grammar, Part, named};
use super::tables::{Spread, literal};

impl Grammar<'_> {
    /// Rows with functions over windows of them.
    pub(super) fn windows(&mut self) -> Part {
        let from = self.from(0);
        let mut columns = Vec::new();
        let mut kinds = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let of = &from.scope[self.random.below(from.scope.len())];
            columns.push(of.name.clone());
            kinds.push(of.kind);
        }
        // Rows that are alike in all of this are alike.
        let total: Vec<Sql> = from.scope.iter().map(|it| it.name.clone()).collect();
        // Rows of such a join may be there twice, and nothing says which of two equal rows is the
        // first in both windows.
        let is_natural = from.sql.ours.contains(" natural ");
        for at in 0..1 + self.random.below(2) {
            let (column, kind) = self.window(&from.scope, &total);
            // It was drawn all the same, so that a seed gives the queries that it gave.
            if is_natural && at > 0 {
                continue;
            }
            columns.push(column);
            kinds.push(kind);
        }
        let mut sql = Sql::of("select {} from {}", &[&named(&columns), &from.sql]);
        if self.random.chance(50) {
            let filter = condition(self.random, &from.scope, 1);
            sql.push(&Sql::of(" where {}", &[&filter]));
        }
        (sql, kinds, !from.is_large)
    }

    /// Functions over windows of groups.
    pub(super) fn windows_of_groups(&mut self) -> Part {
        let from = self.from(0);
        let key = &from.scope[self.random.below(from.scope.len())];
        let (aggregate, kind) = self.aggregate(&from.scope);
        // Doubles that differ in their last digits, or do not, have other ranks.
        let ranked = match kind {
            Kind::Double => &key.name,
            _ => &aggregate,
        };
        let sql = Sql::of(
            "select {} as k0, {} as k1, sum(count(*)) over () as k2, rank() over (order by {}) as k3, \
             lag({}) over (order by {}) as k4 from {} group by {}",
            &[
                &key.name, &aggregate, ranked, &key.name, &key.name, &from.sql, &key.name,
            ],
        );
        let kinds = vec![key.kind, kind, Kind::Integer, Kind::Integer, key.kind];
        (sql, kinds, !from.is_large)
    }

    /// The first row of each group, in an order in which only equal rows are ties.
    pub(super) fn first_of_each(&mut self) -> Part {
        let from = self.from(0);
        let key = &from.scope[self.random.below(from.scope.len())];
        let total: Vec<Sql> = from.scope.iter().map(|it| it.name.clone()).collect();
        let mut columns = vec![key.name.clone()];
        let mut kinds = vec![key.kind];
        for _ in 0..1 + self.random.below(2) {
            let of = &from.scope[self.random.below(from.scope.len())];
            columns.push(of.name.clone());
            kinds.push(of.kind);
        }
        let how = Sql::same(self.random.pick(&["", " desc", " nulls first"]));
        let sql = Sql::of(
            "select * from (select distinct on ({}) {} from {} order by {}{}, {}) d",
            &[
                &key.name,
                &named(&columns),
                &from.sql,
                &key.name,
                &how,
                &Sql::join(&total, ", "),
            ],
        );
        (sql, kinds, !from.is_large)
    }

    pub(super) fn window(&mut self, scope: &[Visible], total: &[Sql]) -> (Sql, Kind) {
        let any = |random: &mut Random| scope[random.below(scope.len())].clone();
        let part = any(self.random);
        let partition = match self.random.chance(70) {
            true => Sql::of("partition by {} ", &[&part.name]),
            false => Sql::default(),
        };
        let by = any(self.random);
        let how = Sql::same(
            self.random
                .pick(&["", " desc", " nulls first", " desc nulls last"]),
        );
        let by_one = Sql::of("order by {}{}", &[&by.name, &how]);
        let by_all = Sql::of("{}, {}", &[&by_one, &Sql::join(total, ", ")]);
        let of = any(self.random);
        let over = |function: &Sql, order: &Sql, frame: &str| {
            Sql::of(
                "{} over ({}{}{})",
                &[function, &partition, order, &Sql::same(frame)],
            )
        };
        match self.random.below(11) {
            8 => {
                // Values as far apart as the frame says.
                let (function, kind) = self.window_aggregate(scope);
                let by = column(self.random, scope, Kind::Integer).map(|it| it.name.clone());
                let by = by.unwrap_or_else(|| Sql::same("1"));
                let frame = self.random.pick(&[
                    " range between 2 preceding and 3 following",
                    " range between current row and 1 following",
                    " range between unbounded preceding and 1 preceding",
                    " range between current row and unbounded following",
                ]);
                let how = Sql::same(self.random.pick(&["", " desc", " nulls first"]));
                (
                    over(&function, &Sql::of("order by {}{}", &[&by, &how]), frame),
                    kind,
                )
            }
            9 => {
                let (function, kind) = self.window_aggregate(scope);
                let frame = self.random.pick(&[
                    " groups between 1 preceding and 1 following",
                    " groups between current row and 2 following",
                    " range between unbounded preceding and unbounded following",
                ]);
                (over(&function, &by_one, frame), kind)
            }
            10 => {
                let function = self.random.pick(&["lag({}, 1, {})", "lead({}, 2, {})"]);
                let other = literal(self.random, of.kind, Spread::Few);
                let function = Sql::of(function, &[&of.name, &other]);
                (over(&function, &by_all, ""), of.kind)
            }
            0 => {
                let function = Sql::same(self.random.pick(&["row_number()", "ntile(3)"]));
                (over(&function, &by_all, ""), Kind::Integer)
            }
            1 => {
                let function = Sql::same(self.random.pick(&["rank()", "dense_rank()"]));
                (over(&function, &by_one, ""), Kind::Integer)
            }
            2 => {
                let function = Sql::same(self.random.pick(&["percent_rank()", "cume_dist()"]));
                (over(&function, &by_one, ""), Kind::Double)
            }
            3 => {
                let function =
                    self.random
                        .pick(&["lag({})", "lead({})", "lag({}, 2)", "lead({}, 3)"]);
                (over(&Sql::of(function, &[&of.name]), &by_all, ""), of.kind)
            }
            4 => {
                let function =
                    self.random
                        .pick(&["first_value({})", "last_value({})", "nth_value({}, 2)"]);
                let frame = self.random.pick(&[
                    "",
                    " rows between 2 preceding and 1 following",
                    " rows between unbounded preceding and unbounded following",
                ]);
                (
                    over(&Sql::of(function, &[&of.name]), &by_all, frame),
                    of.kind,
                )
            }
            _ => {
                let (function, kind) = self.window_aggregate(scope);
                let frame = self.random.pick(&[
                    "",
                    " rows between 2 preceding and 1 following",
                    " rows between unbounded preceding and current row",
                    " rows between current row and 3 following",
                ]);
                match self.random.below(3) {
                    0 => (over(&function, &Sql::default(), ""), kind),
                    1 => (over(&function, &by_one, ""), kind),
                    _ => (over(&function, &by_all, frame), kind),
                }
            }
        }
    }

    pub(super) fn window_aggregate(&mut self, scope: &[Visible]) -> (Sql, Kind) {
        match self.random.below(6) {
            4 => {
                let of = &scope[self.random.below(scope.len())];
                (Sql::of("count({})", &[&of.name]), Kind::Integer)
            }
            5 => {
                let of = value(self.random, scope, Kind::Integer, 0);
                (Sql::of("avg({})", &[&of]), Kind::Double)
            }
            0 => (Sql::same("count(*)"), Kind::Integer),
            1 | 2 => {
                let kind = self
                    .random
                    .pick(&[Kind::Integer, Kind::Decimal, Kind::Double]);
                let of = value(self.random, scope, kind, 0);
                (Sql::of("sum({})", &[&of]), kind)
            }
            _ => {
                let kind =
                    self.random
                        .pick(&[Kind::Integer, Kind::Text, Kind::Date, Kind::Decimal]);
                let of = value(self.random, scope, kind, 0);
                let function = self.random.pick(&["min({})", "max({})"]);
                (Sql::of(function, &[&of]), kind)
            }
        }
    }
}
