//! Random relations: tables, subqueries, joins, and filters.

use super::dual::{Kind, Sql};
use super::expression::{Visible, column, condition};
use super::grammar::{From, Grammar};
use super::tables::{Spread, Table, literal};

impl Grammar<'_> {
    /// A table, a subquery, and their columns.
    pub(super) fn relation(&mut self, may_be_large: bool, depth: usize) -> From {
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
        if depth > 0 && self.random.chance(4) {
            return self.values(&name);
        }
        let tables = match may_be_large {
            true => self.tables,
            false => &self.tables[1..],
        };
        table_as(&tables[self.random.below(tables.len())], &name)
    }

    /// The table that may be large.
    pub(super) fn largest(&mut self) -> From {
        table_as(&self.tables[0], &self.name('a'))
    }

    /// Rows that stand in the text.
    pub(super) fn values(&mut self, name: &str) -> From {
        let kinds = [Kind::Integer, Kind::Text, Kind::Date, Kind::Decimal];
        let rows = (0..1 + self.random.below(5)).map(|at| {
            let values = kinds
                .iter()
                .map(|kind| match at > 0 && self.random.chance(20) {
                    true => Sql::same("null"),
                    false => literal(self.random, *kind, Spread::Few),
                });
            Sql::of("({})", &[&Sql::join(&values.collect::<Vec<_>>(), ", ")])
        });
        let rows: Vec<Sql> = rows.collect();
        let alias = Sql::same(name);
        let scope = kinds.iter().enumerate().map(|(at, kind)| Visible {
            name: Sql::same(format!("{name}.k{at}")),
            kind: *kind,
            spread: Spread::Few,
        });
        From {
            scope: scope.collect(),
            sql: Sql::of(
                "(values {}) {}(k0, k1, k2, k3)",
                &[&Sql::join(&rows, ", "), &alias],
            ),
            is_large: false,
        }
    }

    /// Two tables that are joined by the names of their columns.
    pub(super) fn joined_by_names(&mut self) -> From {
        let (left, right) = (self.name('a'), self.name('a'));
        let small = 1 + self.random.below(self.tables.len() - 1);
        let one = &self.tables[self.random.below(self.tables.len())];
        let other = &self.tables[small];
        // All tables have these, though not of one type.
        let is_of_one_kind = |name: &str| {
            let kind = |table: &Table| {
                let of = table.columns.iter().find(|column| column.name == name);
                of.map(|column| column.kind)
            };
            let (one, other) = (kind(one), kind(other));
            one.is_none() || other.is_none() || one == other
        };
        let are_of_one_kind = one.columns.iter().all(|it| is_of_one_kind(&it.name));
        let is_natural = are_of_one_kind && self.random.chance(30);
        let shared: Vec<&str> = match is_natural {
            true => {
                let names = one.columns.iter().map(|column| column.name.as_str());
                let is_shared = |name: &&str| other.columns.iter().any(|it| it.name == *name);
                names.filter(is_shared).collect()
            }
            false => self
                .random
                .pick(&[&["i1"][..], &["i0"], &["t2"], &["i1", "t2"]])
                .to_vec(),
        };
        let join = self
            .random
            .pick(&["join", "left join", "right join", "full join"]);
        let how = match is_natural {
            true => format!("{} {left} natural {join} {} {right}", one.name, other.name),
            false => format!(
                "{} {left} {join} {} {right} using ({})",
                one.name,
                other.name,
                shared.join(", ")
            ),
        };
        let mut scope = Vec::new();
        for (name, table) in [(&left, one), (&right, other)] {
            for column in &table.columns {
                let is_shared = shared.contains(&column.name.as_str());
                if is_shared && name == &right {
                    continue;
                }
                let name = match is_shared {
                    true => column.name.clone(),
                    false => format!("{name}.{}", column.name),
                };
                scope.push(Visible {
                    name: Sql::same(name),
                    kind: column.kind,
                    spread: column.spread,
                });
            }
        }
        From {
            sql: Sql::same(how),
            scope,
            is_large: one.is_large,
        }
    }

    /// A subquery that sees what stands before it.
    pub(super) fn lateral(&mut self, all: &From) -> Option<From> {
        let name = self.name('a');
        let inner = self.relation(false, 0);
        let on = self.equality(&all.scope, &inner.scope)?;
        let of = &inner.scope[self.random.below(inner.scope.len())];
        let alias = Sql::same(&name);
        let sql = match self.random.chance(50) {
            true => Sql::of(
                "lateral (select max({}) as k0, count(*) as k1 from {} where {}) {}",
                &[&of.name, &inner.sql, &on, &alias],
            ),
            false => Sql::of(
                "lateral (select {} as k0, 1 as k1 from {} where {}) {}",
                &[&of.name, &inner.sql, &on, &alias],
            ),
        };
        let column = |at: usize, kind: Kind| Visible {
            name: Sql::same(format!("{name}.k{at}")),
            kind,
            spread: Spread::Few,
        };
        Some(From {
            scope: vec![column(0, of.kind), column(1, Kind::Integer)],
            sql,
            is_large: false,
        })
    }

    /// One relation or a few, joined. Only one of them is large, unless two of these meet in their
    /// unique columns.
    pub(super) fn from(&mut self, depth: usize) -> From {
        if self.random.chance(5) {
            return self.joined_by_names();
        }
        let mut all = self.relation(true, depth);
        let joins = self.random.pick(&[0, 0, 1, 1, 1, 2, 3]);
        for _ in 0..joins {
            if self.random.chance(4)
                && let Some(next) = self.lateral(&all)
            {
                let how = self
                    .random
                    .pick(&["{} cross join {}", "{} left join {} on true"]);
                all.sql = Sql::of(how, &[&all.sql, &next.sql]);
                all.scope.extend(next.scope);
                continue;
            }
            let is_self_join = all.is_large && self.random.chance(25);
            let next = match is_self_join {
                true => self.largest(),
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
                // Joins that only compare.
                None if self.random.chance(50) => {
                    let on = condition(self.random, &scope, 1);
                    let join = Sql::same(self.random.pick(&[
                        "join",
                        "left join",
                        "right join",
                        "full join",
                    ]));
                    Sql::of("{} {} {} on {}", &[&all.sql, &join, &next.sql, &on])
                }
                None => Sql::of("{} cross join {}", &[&all.sql, &next.sql]),
            };
            all.scope = scope;
            all.is_large = is_wide;
        }
        all
    }

    /// What makes a join of two small enough.
    pub(super) fn equality(&mut self, left: &[Visible], right: &[Visible]) -> Option<Sql> {
        let kind = self.random.pick(&[
            Kind::Integer,
            Kind::Integer,
            Kind::Integer,
            Kind::Text,
            Kind::Date,
            Kind::Decimal,
            Kind::Time,
            Kind::Bound,
            Kind::Double,
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
}

/// A table under another name.
fn table_as(table: &Table, name: &str) -> From {
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

fn column_of(scope: &[Visible], spread: Spread) -> Sql {
    let found = scope.iter().find(|it| it.spread == spread);
    found.map_or_else(|| Sql::same("1"), |it| it.name.clone())
}
