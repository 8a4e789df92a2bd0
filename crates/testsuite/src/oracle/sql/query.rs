//! Random queries: from which tables, joined how, and what is asked of their rows.
//!
//! An answer is one multiset, whoever computes it: a limit stands only behind an order by all columns, and what depends on the order within
//! a window has one in which only equal rows are ties.

use super::super::random::Random;
use super::dual::{Kind, Sql};
use super::expression::{Visible, column, condition, value};
use super::tables::{Spread, Table};

/// Rows of an answer without aggregates over a large table.
const LIMIT_MAX: usize = 60;

/// A query and whether its rows have an order.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) sql: Sql,
    pub(super) is_ordered: bool,
}

/// Makes queries over some tables.
pub(super) struct Grammar<'a> {
    pub(super) random: &'a mut Random,
    pub(super) tables: &'a [Table],
    /// Numbers the names that it gives.
    names: usize,
}

/// Where rows come from.
struct From {
    sql: Sql,
    scope: Vec<Visible>,
    is_large: bool,
}

impl<'a> Grammar<'a> {
    pub(super) fn new(random: &'a mut Random, tables: &'a [Table]) -> Self {
        Self {
            random,
            tables,
            names: 0,
        }
    }

    /// A query.
    pub(super) fn query(&mut self) -> Query {
        let (sql, kinds, is_bounded) = match self.random.below(20) {
            0..=6 => self.rows(2, &[], None),
            7..=12 => self.groups(),
            13..=15 => self.windows(),
            16..=18 => self.set_operation(),
            _ => self.with_common_table(),
        };
        let is_ordered = !is_bounded || self.random.chance(40);
        if !is_ordered {
            return Query { sql, is_ordered };
        }
        let mut sql = sql;
        sql.push(&self.order(kinds.len()));
        if !is_bounded || self.random.chance(50) {
            let limit = self.random.below(LIMIT_MAX);
            sql.add(&format!(" limit {limit}"));
            if self.random.chance(20) {
                sql.add(&format!(" offset {}", self.random.below(20)));
            }
        }
        Query { sql, is_ordered }
    }

    fn order(&mut self, columns: usize) -> Sql {
        let mut places: Vec<usize> = (1..=columns).collect();
        for at in (1..places.len()).rev() {
            places.swap(at, self.random.below(at + 1));
        }
        let parts = places.into_iter().map(|place| {
            let how = self.random.pick(&[
                "",
                " desc",
                " nulls first",
                " desc nulls last",
                " asc nulls last",
            ]);
            Sql::same(format!("{place}{how}"))
        });
        let parts: Vec<Sql> = parts.collect();
        Sql::of(" order by {}", &[&Sql::join(&parts, ", ")])
    }

    fn name(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    /// A table, a subquery, and their columns.
    fn relation(&mut self, may_be_large: bool, depth: usize) -> From {
        let name = self.name('a');
        if depth > 0 && self.random.chance(18) {
            let (sql, kinds, is_bounded) = match self.random.chance(50) {
                true => self.groups(),
                false => self.rows(0, &[], None),
            };
            let mut sql = sql;
            if !is_bounded {
                sql.push(&self.order(kinds.len()));
                sql.add(" limit 40");
            }
            let columns: Vec<Sql> = (0..kinds.len())
                .map(|at| Sql::same(format!("k{at}")))
                .collect();
            let alias = Sql::same(&name);
            let scope = kinds.iter().zip(&columns).map(|(kind, column)| Visible {
                name: Sql::of("{}.{}", &[&alias, column]),
                kind: *kind,
                spread: Spread::Few,
            });
            return From {
                scope: scope.collect(),
                sql: Sql::of("({}) {}({})", &[&sql, &alias, &Sql::join(&columns, ", ")]),
                is_large: false,
            };
        }
        let tables = match may_be_large {
            true => self.tables,
            false => &self.tables[1..],
        };
        let table = &tables[self.random.below(tables.len())];
        let scope = table.columns.iter().map(|column| Visible {
            name: Sql::same(format!("{name}.{}", column.name)),
            kind: column.kind,
            spread: column.spread,
        });
        From {
            scope: scope.collect(),
            sql: Sql::same(format!("{} {name}", table.name)),
            is_large: table.is_large,
        }
    }

    /// One relation or a few, joined. Only one of them is large, unless two of these meet in their unique columns.
    fn from(&mut self, depth: usize) -> From {
        let mut all = self.relation(true, depth);
        let joins = self.random.pick(&[0, 0, 1, 1, 1, 2]);
        for _ in 0..joins {
            let is_self_join = all.is_large && self.random.chance(25);
            let next = match is_self_join {
                true => {
                    let table = &self.tables[0];
                    let name = self.name('a');
                    let scope = table.columns.iter().map(|column| Visible {
                        name: Sql::same(format!("{name}.{}", column.name)),
                        kind: column.kind,
                        spread: column.spread,
                    });
                    From {
                        scope: scope.collect(),
                        sql: Sql::same(format!("{} {name}", table.name)),
                        is_large: true,
                    }
                }
                false => self.relation(!all.is_large, depth),
            };
            let is_wide = all.is_large || next.is_large;
            let on = match is_self_join {
                true => Some(Sql::of(
                    "{} = {}",
                    &[
                        &column_of(&all.scope, Spread::Unique),
                        &column_of(&next.scope, Spread::Unique),
                    ],
                )),
                false => self.equality(&all.scope, &next.scope),
            };
            let scope: Vec<Visible> = all.scope.iter().chain(&next.scope).cloned().collect();
            all.sql = match on {
                Some(mut on) => {
                    if self.random.chance(25) {
                        let more = condition(self.random, &scope, 1);
                        on = Sql::of("{} and {}", &[&on, &more]);
                    }
                    let join = Sql::same(self.random.pick(&[
                        "join",
                        "join",
                        "left join",
                        "right join",
                        "full join",
                    ]));
                    Sql::of("{} {} {} on {}", &[&all.sql, &join, &next.sql, &on])
                }
                None if is_wide => continue,
                None => Sql::of("{} cross join {}", &[&all.sql, &next.sql]),
            };
            all.scope = scope;
            all.is_large = is_wide;
        }
        all
    }

    /// What makes a join of two small enough.
    fn equality(&mut self, left: &[Visible], right: &[Visible]) -> Option<Sql> {
        let kind = self.random.pick(&[
            Kind::Integer,
            Kind::Integer,
            Kind::Integer,
            Kind::Text,
            Kind::Date,
            Kind::Decimal,
        ]);
        let left = column(self.random, left, kind)?;
        let right = column(self.random, right, kind)?;
        let sign = if self.random.chance(5) {
            "is not distinct from"
        } else {
            "="
        };
        Some(Sql::of(
            "{} {} {}",
            &[&left.name, &Sql::same(sign), &right.name],
        ))
    }

    /// A condition, with subqueries among it.
    fn filter(&mut self, scope: &[Visible], depth: usize) -> Sql {
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

    fn subquery_condition(&mut self, scope: &[Visible]) -> Sql {
        let outer = &scope[self.random.below(scope.len())];
        let negated = Sql::same(if self.random.chance(35) { "not " } else { "" });
        match self.random.below(4) {
            0 => {
                let (sql, ..) = self.rows(0, &[], Some(outer.kind));
                Sql::of("{} {}in ({})", &[&outer.name, &negated, &sql])
            }
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

    /// One value out of a subquery, for each row perhaps another.
    fn scalar(&mut self, scope: &[Visible], kind: Kind) -> Sql {
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

    /// Rows without aggregates: the text, the kinds of its columns, and whether they are few enough. With kinds, these are the columns.
    fn rows(&mut self, depth: usize, kinds: &[Kind], one: Option<Kind>) -> (Sql, Vec<Kind>, bool) {
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

    fn aggregate(&mut self, scope: &[Visible]) -> (Sql, Kind) {
        let of_kind = |random: &mut Random, kind| value(random, scope, kind, 1);
        let distinct = Sql::same(if self.random.chance(15) {
            "distinct "
        } else {
            ""
        });
        let (mut sql, kind) = match self.random.below(9) {
            0 | 1 => (Sql::same("count(*)"), Kind::Integer),
            2 => {
                let kind = self.random.pick(&Kind::ALL);
                let of = of_kind(self.random, kind);
                (Sql::of("count({}{})", &[&distinct, &of]), Kind::Integer)
            }
            3 | 4 => {
                let kind = self
                    .random
                    .pick(&[Kind::Integer, Kind::Decimal, Kind::Double]);
                let of = of_kind(self.random, kind);
                (Sql::of("sum({}{})", &[&distinct, &of]), kind)
            }
            5 => {
                let kind = self.random.pick(&[Kind::Integer, Kind::Double]);
                let of = of_kind(self.random, kind);
                (Sql::of("avg({})", &[&of]), Kind::Double)
            }
            6 => {
                let of = of_kind(self.random, Kind::Boolean);
                let function = self.random.pick(&["bool_and({})", "bool_or({})"]);
                (Sql::of(function, &[&of]), Kind::Boolean)
            }
            _ => {
                let kind = self.random.pick(&Kind::ALL);
                let of = of_kind(self.random, kind);
                let function = self.random.pick(&["min({})", "max({})"]);
                (Sql::of(function, &[&of]), kind)
            }
        };
        if self.random.chance(12) {
            let filter = condition(self.random, scope, 1);
            sql.push(&Sql::of(" filter (where {})", &[&filter]));
        }
        (sql, kind)
    }

    /// Groups and aggregates over them.
    fn groups(&mut self) -> (Sql, Vec<Kind>, bool) {
        let from = self.from(1);
        let mut keys = Vec::new();
        let mut key_kinds = Vec::new();
        for _ in 0..self.random.below(4) {
            let of = &from.scope[self.random.below(from.scope.len())];
            let key = match self.random.chance(75) {
                true => of.name.clone(),
                false => value(self.random, &from.scope, of.kind, 1),
            };
            // A key that is a literal would be a place in the list of columns.
            if !keys.contains(&key) && key.ours.contains(".") && key.ours.contains('a') {
                keys.push(key);
                key_kinds.push(of.kind);
            }
        }
        let mut columns = keys.clone();
        let mut all = key_kinds;
        for _ in 0..1 + self.random.below(3) {
            let (aggregate, kind) = self.aggregate(&from.scope);
            columns.push(aggregate);
            all.push(kind);
        }
        let mut sql = Sql::of("select {} from {}", &[&named(&columns), &from.sql]);
        if self.random.chance(60) {
            let filter = self.filter(&from.scope, 1);
            sql.push(&Sql::of(" where {}", &[&filter]));
        }
        if !keys.is_empty() {
            let how = match self.random.below(12) {
                0 => " group by rollup ({})",
                1 if keys.len() < 3 => " group by cube ({})",
                _ => " group by {}",
            };
            sql.push(&Sql::of(how, &[&Sql::join(&keys, ", ")]));
            if self.random.chance(25) {
                let (aggregate, kind) = self.aggregate(&from.scope);
                let other = super::tables::literal(self.random, kind, Spread::Few);
                let sign = Sql::same(self.random.pick(&[">", "<=", "<>"]));
                sql.push(&Sql::of(" having {} {} {}", &[&aggregate, &sign, &other]));
            }
        }
        (sql, all, true)
    }

    /// Rows with functions over windows of them.
    fn windows(&mut self) -> (Sql, Vec<Kind>, bool) {
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
        for _ in 0..1 + self.random.below(2) {
            let (column, kind) = self.window(&from.scope, &total);
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

    fn window(&mut self, scope: &[Visible], total: &[Sql]) -> (Sql, Kind) {
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
        match self.random.below(8) {
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

    fn window_aggregate(&mut self, scope: &[Visible]) -> (Sql, Kind) {
        match self.random.below(4) {
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

    fn set_operation(&mut self) -> (Sql, Vec<Kind>, bool) {
        let kinds: Vec<Kind> = (0..1 + self.random.below(3))
            .map(|_| self.random.pick(&Kind::ALL))
            .collect();
        let (mut sql, _, mut is_bounded) = self.rows(1, &kinds, None);
        for _ in 0..1 + self.random.below(2) {
            let operation =
                Sql::same(
                    self.random
                        .pick(&["union", "union all", "intersect", "except"]),
                );
            let (next, _, is_next_bounded) = self.rows(1, &kinds, None);
            sql = Sql::of("({}) {} ({})", &[&sql, &operation, &next]);
            is_bounded &= is_next_bounded;
        }
        (sql, kinds, is_bounded)
    }

    fn with_common_table(&mut self) -> (Sql, Vec<Kind>, bool) {
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
        let last = kinds.len() - 1;
        let on = Sql::of(
            "{} = {}",
            &[&both[last].name, &both[kinds.len() + last].name],
        );
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
}

/// Columns with names of their own: two may be one expression.
fn named(columns: &[Sql]) -> Sql {
    let columns = columns.iter().enumerate();
    let named = columns.map(|(at, column)| Sql::of(&format!("{{}} as k{at}"), &[column]));
    Sql::join(&named.collect::<Vec<_>>(), ", ")
}

fn column_of(scope: &[Visible], spread: Spread) -> Sql {
    let found = scope.iter().find(|it| it.spread == spread);
    found.map_or_else(|| Sql::same("1"), |it| it.name.clone())
}
