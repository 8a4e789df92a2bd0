//! Random groupings and aggregates.

use super::super::random::Random;
use super::dual::{Kind, Sql};
use super::expression::{Visible, column, condition, value};
use super::grammar::{Grammar, Part, named};
use super::tables::{Spread, literal};

impl Grammar<'_> {
    /// Groups and aggregates over them.
    pub(super) fn groups(&mut self) -> Part {
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
                2 => " group by grouping sets (({}), ())",
                _ => " group by {}",
            };
            sql.push(&Sql::of(how, &[&Sql::join(&keys, ", ")]));
            if self.random.chance(25) {
                let (aggregate, kind) = self.aggregate(&from.scope);
                let other = literal(self.random, kind, Spread::Few);
                let sign = Sql::same(self.random.pick(&[">", "<=", "<>"]));
                sql.push(&Sql::of(" having {} {} {}", &[&aggregate, &sign, &other]));
            }
        }
        (sql, all, true)
    }

    /// Sums over a large table by columns of few values: what tables of groups are for.
    pub(super) fn few_groups(&mut self) -> Part {
        let table = &self.tables[0];
        let is_key = |kind: Kind| {
            matches!(
                kind,
                Kind::Integer | Kind::Text | Kind::Date | Kind::Boolean
            )
        };
        let of_table: Vec<Visible> = table
            .columns
            .iter()
            .map(|column| Visible {
                name: Sql::same(&column.name),
                kind: column.kind,
                spread: column.spread,
            })
            .collect();
        let keys: Vec<&Visible> = of_table
            .iter()
            .filter(|it| is_key(it.kind) && it.spread == Spread::Few)
            .collect();
        let mut columns: Vec<Sql> = Vec::new();
        let mut kinds = Vec::new();
        for _ in 0..self.random.below(3) {
            if keys.is_empty() {
                break;
            }
            let key = keys[self.random.below(keys.len())];
            if !columns.contains(&key.name) {
                columns.push(key.name.clone());
                kinds.push(key.kind);
            }
        }
        let grouped = Sql::join(&columns, ", ");
        let is_grouped = !columns.is_empty();
        // One aggregate that these tables do not know, and there is none.
        let kinds_of_aggregates = self.random.pick(&[6, 6, 10]);
        for _ in 0..1 + self.random.below(4) {
            let number = |random: &mut Random, kind| {
                let found = column(random, &of_table, kind).map(|it| it.name.clone());
                found.unwrap_or_else(|| Sql::same("cast(i1 as bigint)"))
            };
            let decimal = number(self.random, Kind::Decimal);
            let other = number(self.random, Kind::Decimal);
            let integer = number(self.random, Kind::Integer);
            let any = &of_table[self.random.below(of_table.len())];
            let (sql, kind) = match self.random.below(kinds_of_aggregates) {
                0 => (Sql::same("count(*)"), Kind::Integer),
                1 => (Sql::of("count({})", &[&any.name]), Kind::Integer),
                2 => (Sql::of("sum({})", &[&decimal]), Kind::Decimal),
                3 => (
                    Sql::of("sum({} * (1 - {}))", &[&decimal, &other]),
                    Kind::Decimal,
                ),
                4 => (
                    Sql::of("sum({} - {} * 2)", &[&decimal, &other]),
                    Kind::Decimal,
                ),
                5 => {
                    let function = self.random.pick(&["min({})", "max({})"]);
                    (Sql::of(function, &[&integer]), Kind::Integer)
                }
                6 => (Sql::of("sum({})", &[&integer]), Kind::Integer),
                7 => (average_of_decimals(&decimal), Kind::Decimal),
                8 => (Sql::of("min({})", &[&any.name]), any.kind),
                _ => (Sql::of("max({})", &[&any.name]), any.kind),
            };
            columns.push(sql);
            kinds.push(kind);
        }
        let name = Sql::same(&table.name);
        let mut sql = Sql::of("select {} from {}", &[&named(&columns), &name]);
        if self.random.chance(60) {
            let filter = condition(self.random, &of_table, 1);
            sql.push(&Sql::of(" where {}", &[&filter]));
        }
        if is_grouped {
            sql.push(&Sql::of(" group by {}", &[&grouped]));
        }
        (sql, kinds, true)
    }

    pub(super) fn aggregate(&mut self, scope: &[Visible]) -> (Sql, Kind) {
        let of_kind = |random: &mut Random, kind| value(random, scope, kind, 1);
        let distinct = Sql::same(if self.random.chance(15) {
            "distinct "
        } else {
            ""
        });
        let (mut sql, kind) = match self.random.below(13) {
            9 => {
                let of = of_kind(self.random, Kind::Decimal);
                (average_of_decimals(&of), Kind::Decimal)
            }
            10 => {
                let of = value(self.random, scope, Kind::Text, 0);
                // Both order texts by their bytes.
                let joined = Sql::of("string_agg({}, ',' order by {})", &[&of, &of]);
                (joined, Kind::Text)
            }
            11 => {
                let function = self.random.pick(&["stddev_samp({})", "var_pop({})"]);
                let of = value(self.random, scope, Kind::Integer, 0);
                (Sql::of(function, &[&of]), Kind::Double)
            }
            12 => {
                let kind = self
                    .random
                    .pick(&[Kind::Integer, Kind::Decimal, Kind::Bound]);
                let of = value(self.random, scope, kind, 0);
                (Sql::of("sum({}{})", &[&distinct, &of]), kind)
            }
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
                let mut of = of_kind(self.random, kind);
                // Averages of roots and quotients differ in their last digits, by which rows are
                // then sorted.
                if of.ours.contains("sqrt(") || of.ours.contains(" / ") {
                    of = Sql::of("floor({})", &[&of]);
                }
                // A sum of integers is a numeric, whose average has as many digits behind the point
                // as docs/sql.md says.
                if of.ours.contains(".k") {
                    of = Sql::of("cast({} as double precision)", &[&of]);
                }
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
        // DuckDB's average of decimals is none of one function.
        let is_one = sql.theirs.ends_with(')') && !sql.theirs.contains(" // ");
        if is_one && self.random.chance(12) {
            let filter = condition(self.random, scope, 1);
            sql.push(&Sql::of(" filter (where {})", &[&filter]));
        }
        (sql, kind)
    }
}

/// The average of decimals with two digits behind the point: exact, cut off behind six of them.
/// DuckDB's would be a double.
fn average_of_decimals(of: &Sql) -> Sql {
    let mut average = Sql::of("avg(cast({} as decimal(15,2)))", &[of]);
    average.theirs = format!(
        "cast(cast(sum(cast({0} as decimal(15,2))) * 100 as hugeint) * 10000 // \
         nullif(count({0}), 0) as decimal(30,0)) * cast(0.000001 as decimal(6,6))",
        of.theirs
    );
    average
}
