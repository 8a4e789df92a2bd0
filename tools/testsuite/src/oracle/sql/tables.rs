//! Random tables: definitions and rows.
//!
//! One table of a data set has thousands of rows, so that whole vectors can be passed over; the
//! others have few, so that joins stay small. Rows come in several statements, some of them go or
//! change, and between these what changed is brought into files, or not. DuckDB has the same tables
//! without keys and indexes: what they forbid is not made here.

use std::collections::HashSet;

use super::super::random::Random;
use super::dual::{Kind, Sql, bytes, quoted};

/// Rows of one statement.
const ROWS_AT_ONCE: usize = 500;
const TEXTS: &[&str] = &[
    "",
    "a",
    "A",
    "ab",
    "abc",
    "b",
    "blue",
    "green",
    "red",
    "Red",
    "ä",
    "äö",
    "z ",
    " z",
    "a%b",
    "a_b",
    "100",
    "a rather long text of more than a few bytes",
    "a rather long text that ends otherwise",
    "it's",
];
const BYTES: &[&[u8]] = &[
    b"",
    b"\x00",
    b"\x00\xff",
    b"\x01",
    b"or",
    b"more bytes than twelve of them",
];

/// Where types of integers begin and end, and where doubles no longer know each integer.
const BOUNDS: &[i64] = &[
    i64::MIN,
    i64::MIN + 1,
    -9_007_199_254_740_993,
    i32::MIN as i64,
    i16::MIN as i64,
    -1,
    0,
    1,
    i16::MAX as i64,
    i32::MAX as i64,
    9_007_199_254_740_993,
    i64::MAX - 1,
    i64::MAX,
];
/// Days of which months, years and eras begin.
const DAYS: &[&str] = &[
    "9999-12-31",
    "1000-01-01",
    "1969-12-31",
    "1970-01-01",
    "1600-02-29",
    "2000-12-31",
    "0100-01-01",
];

/// How the values of a column are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spread {
    /// Few, so that rows share them.
    Few,
    /// Many.
    Wide,
    /// Ascending, with gaps and no value twice.
    Unique,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) spread: Spread,
    declared: Sql,
    is_nullable: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Whether it has thousands of rows.
    pub(super) is_large: bool,
    /// The columns of the primary key.
    key: Vec<usize>,
    keys: HashSet<String>,
    next: i64,
    added: usize,
}

/// What makes the tables.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Both(Sql),
    /// For our side alone: keys and indexes have nothing to do with answers.
    Ours(String),
    /// The changes of a table are brought into its files.
    Compact(String),
    /// Queries that fail go back to here.
    Block,
}

/// Some tables and what makes them.
pub(super) struct DataSet {
    pub(super) tables: Vec<Table>,
    pub(super) steps: Vec<Step>,
    /// Whether all is asked within a transaction that has changed something.
    pub(super) is_within_block: bool,
}

/// A literal of a kind, as columns have them.
pub(super) fn literal(random: &mut Random, kind: Kind, spread: Spread) -> Sql {
    let range = match spread {
        Spread::Few => 12,
        Spread::Wide | Spread::Unique => 900,
    };
    let number = random.below(range) as i64 - range as i64 / 4;
    let day = |random: &mut Random| {
        if random.chance(3) {
            return random.pick(DAYS).to_owned();
        }
        let day = random.below(range.min(336));
        format!("2020-{:02}-{:02}", day / 28 + 1, day % 28 + 1)
    };
    match kind {
        Kind::Integer => Sql::same(number.to_string()),
        Kind::Bound if random.chance(40) => Sql::same(number.to_string()),
        Kind::Bound => Sql::same(random.pick(BOUNDS).to_string()),
        Kind::Decimal => Sql::same(format!("{number}.{:02}", random.pick(&[0, 5, 25, 50, 99]))),
        Kind::Double if random.chance(3) => Sql::same("'-0'::double"),
        Kind::Double => Sql::same(format!("'{}'::double", number as f64 / 4.0)),
        Kind::Boolean => Sql::same(random.pick(&["true", "false"])),
        Kind::Date => Sql::same(format!("date '{}'", day(random))),
        Kind::Time => {
            let time = random.pick(&["00:00:00", "12:30:00", "23:59:59.999999"]);
            Sql::same(format!("timestamp '{} {time}'", day(random)))
        }
        Kind::Text if spread == Spread::Wide && random.chance(60) => {
            Sql::same(quoted(&format!("text {number}")))
        }
        Kind::Text => Sql::same(quoted(random.pick(TEXTS))),
        Kind::Bytes => bytes(random.pick(BYTES)),
    }
}

impl DataSet {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut set = Self {
            tables: Vec::new(),
            steps: Vec::new(),
            is_within_block: false,
        };
        for number in 0..3 + random.below(2) {
            let table = Table::new(random, number, number == 0);
            set.define(random, &table);
            set.tables.push(table);
        }
        let mut tables = std::mem::take(&mut set.tables);
        for table in &mut tables {
            set.fill(random, table);
        }
        set.tables = tables;
        if random.chance(25) {
            set.change_within_block(random);
        }
        set
    }

    fn define(&mut self, random: &mut Random, table: &Table) {
        let columns = |of: &dyn Fn(&Column) -> &str, with_keys: bool| {
            let columns = table.columns.iter().map(|column| {
                let is_not_null = with_keys && !column.is_nullable;
                let not_null = if is_not_null { " not null" } else { "" };
                format!("{} {}{not_null}", column.name, of(column))
            });
            columns.collect::<Vec<_>>().join(", ")
        };
        let name = &table.name;
        let mut ours = format!(
            "create table {name} ({}",
            columns(&|column| &column.declared.ours, true)
        );
        if !table.key.is_empty() {
            let key = table.key.iter().map(|&at| table.columns[at].name.as_str());
            ours.push_str(&format!(
                ", primary key ({})",
                key.collect::<Vec<_>>().join(", ")
            ));
        }
        ours.push(')');
        let theirs = format!(
            "create table {name} ({})",
            columns(&|column| &column.declared.theirs, false)
        );
        self.steps.push(Step::Both(Sql { ours, theirs }));
        for _ in 0..random.below(3) {
            let first = random.below(table.columns.len());
            let second = random.below(table.columns.len());
            let included = random.below(table.columns.len());
            let is_unique = table.columns[first].spread == Spread::Unique && random.chance(60);
            let of = |at: usize| &table.columns[at].name;
            let key = match second == first || random.chance(50) {
                true => of(first).clone(),
                false => format!("{}, {}", of(first), of(second)),
            };
            let is_free = included != first && included != second;
            let include = match is_free && random.chance(50) {
                true => format!(" include ({})", of(included)),
                false => String::new(),
            };
            let unique = if is_unique { "unique " } else { "" };
            self.steps.push(Step::Ours(format!(
                "create {unique}index on {name} ({key}){include}"
            )));
        }
    }

    fn fill(&mut self, random: &mut Random, table: &mut Table) {
        if table.is_large && random.chance(70) {
            self.insert_many(random, table);
        }
        let rows = match table.is_large {
            true => 500 + random.below(2_000),
            false => random.pick(&[0, 1, 8, 30, 60]),
        };
        let before = rows * random.below(101) / 100;
        self.insert(random, table, before);
        self.compact(random, table, 75);
        self.insert(random, table, (rows - before) / 2);
        self.change(random, table);
        self.compact(random, table, 30);
        if random.chance(30) {
            self.add_column(random, table);
        }
        self.insert(random, table, (rows - before) / 2);
        self.change(random, table);
    }

    fn compact(&mut self, random: &mut Random, table: &Table, percent: usize) {
        if random.chance(percent) {
            self.steps.push(Step::Compact(table.name.clone()));
        }
    }

    fn insert(&mut self, random: &mut Random, table: &mut Table, mut rows: usize) {
        while rows > 0 {
            let at_once = rows.min(ROWS_AT_ONCE);
            let rows_of_it: Vec<Sql> = (0..at_once).filter_map(|_| table.row(random)).collect();
            if !rows_of_it.is_empty() {
                let values = Sql::join(&rows_of_it, ", ");
                let head = Sql::same(&table.name);
                self.steps.push(Step::Both(Sql::of(
                    "insert into {} values {}",
                    &[&head, &values],
                )));
            }
            rows -= at_once;
        }
    }

    /// Thousands of rows by one statement, which computes them; in some sets as many as are written
    /// sorted to files at once.
    fn insert_many(&mut self, random: &mut Random, table: &mut Table) {
        let rows = match random.below(20) {
            0 => 100_000 + random.below(20_000),
            // More than a group of rows in a file, so that threads share them.
            1..=6 => 33_000 + random.below(30_000),
            _ => 2_000 + random.below(8_000),
        };
        let is_ascending = random.chance(50);
        let values = table.columns.iter().map(|column| match column.spread {
            // Below those of single rows, and all different.
            Spread::Unique if is_ascending => Sql::same("-value - 1"),
            Spread::Unique => Sql::same("-(value * 7919 % 200003) - 1"),
            _ => column.of_number(random),
        });
        let values = Sql::join(&values.collect::<Vec<_>>(), ", ");
        let name = Sql::same(&table.name);
        let last = Sql::same((rows - 1).to_string());
        self.steps.push(Step::Both(Sql::of(
            "insert into {} select {} from generate_series(0, {}) as g(value)",
            &[&name, &values, &last],
        )));
        self.compact(random, table, 80);
    }

    /// Further rows and changes of a transaction that nobody commits, in which all is asked.
    fn change_within_block(&mut self, random: &mut Random) {
        self.steps.push(Step::Ours("begin".to_owned()));
        let mut tables = std::mem::take(&mut self.tables);
        for table in &mut tables {
            let rows = random.pick(&[0, 3, 20]);
            self.insert(random, table, rows);
            self.change(random, table);
        }
        self.tables = tables;
        self.steps.push(Step::Block);
        self.is_within_block = true;
    }

    /// Rows go, and rows change where no key does.
    fn change(&mut self, random: &mut Random, table: &Table) {
        for _ in 0..random.below(3) {
            let condition = table.condition(random);
            let name = Sql::same(&table.name);
            if random.chance(50) {
                self.steps.push(Step::Both(Sql::of(
                    "delete from {} where {}",
                    &[&name, &condition],
                )));
                continue;
            }
            let free: Vec<&Column> = table
                .columns
                .iter()
                .enumerate()
                .filter(|(at, column)| column.spread != Spread::Unique && !table.key.contains(at))
                .map(|(_, column)| column)
                .collect();
            if free.is_empty() {
                continue;
            }
            let column = free[random.below(free.len())];
            let value = match column.is_nullable && random.chance(20) {
                true => Sql::same("null"),
                false => literal(random, column.kind, column.spread),
            };
            let set = Sql::same(&column.name);
            self.steps.push(Step::Both(Sql::of(
                "update {} set {} = {} where {}",
                &[&name, &set, &value, &condition],
            )));
        }
    }

    fn add_column(&mut self, random: &mut Random, table: &mut Table) {
        table.added += 1;
        let kind = random.pick(&[Kind::Integer, Kind::Text, Kind::Decimal]);
        let mut column = Column::new(random, format!("n{}", table.added), kind);
        column.spread = Spread::Few;
        column.is_nullable = true;
        let value = literal(random, kind, Spread::Few);
        let name = Sql::same(&table.name);
        let of = Sql::same(&column.name);
        self.steps.push(Step::Both(Sql::of(
            "alter table {} add column {} {} default {}",
            &[&name, &of, &column.declared, &value],
        )));
        table.columns.push(column);
    }
}

impl Column {
    fn new(random: &mut Random, name: String, kind: Kind) -> Self {
        let (ours, theirs) = match kind {
            Kind::Integer => random.pick(&[
                ("integer", "integer"),
                ("bigint", "bigint"),
                ("smallint", "smallint"),
            ]),
            Kind::Bound => ("bigint", "bigint"),
            Kind::Decimal => random.pick(&[
                ("numeric(9,2)", "decimal(9,2)"),
                ("numeric(20,4)", "decimal(20,4)"),
                ("numeric(38,6)", "decimal(38,6)"),
            ]),
            Kind::Double => random.pick(&[("double precision", "double"), ("real", "real")]),
            Kind::Boolean => ("boolean", "boolean"),
            Kind::Date => ("date", "date"),
            Kind::Time => ("timestamp", "timestamp"),
            Kind::Text => random.pick(&[("text", "text"), ("varchar(60)", "text")]),
            Kind::Bytes => ("bytea", "blob"),
        };
        Self {
            name,
            kind,
            spread: random.pick(&[Spread::Few, Spread::Few, Spread::Wide]),
            declared: Sql {
                ours: ours.to_owned(),
                theirs: theirs.to_owned(),
            },
            is_nullable: random.chance(60),
        }
    }

    /// A value as the rows of a large table have it, made of `value`, a number of the row; each
    /// column takes others of it.
    fn of_number(&self, random: &mut Random) -> Sql {
        let range = match self.spread {
            Spread::Few => 3 + random.below(10),
            Spread::Wide | Spread::Unique => 300 + random.below(900),
        };
        let factor = random.pick(&[1, 7, 37, 7_919]);
        let number = match random.chance(30) {
            // Rows that follow one another are alike.
            true => format!("(value / {} % {range})", 1 + random.below(900)),
            false => format!("(value * {factor} % {range})"),
        };
        let mut number = Sql::same(number);
        number.theirs = number.theirs.replace(" / ", " // ");
        let less = Sql::same((range / 4).to_string());
        let value = match self.kind {
            Kind::Integer | Kind::Bound => Sql::of("{} - {}", &[&number, &less]),
            Kind::Decimal => Sql::of("cast({} - {} as decimal(9,2)) * 0.25", &[&number, &less]),
            Kind::Double => Sql::of("cast({} - {} as double precision) / 4", &[&number, &less]),
            Kind::Boolean => Sql::of("{} % 3 = 0", &[&number]),
            Kind::Date => Sql::of(
                "date '{}' + cast({} as integer)",
                &[
                    &Sql::same(random.pick(&["2020-01-01", "1969-11-20"])),
                    &number,
                ],
            ),
            Kind::Time => Sql::of(
                "cast(date '2020-01-01' + cast({} as integer) as timestamp)",
                &[&number],
            ),
            Kind::Text => Sql::of(
                "{} || cast({} as text)",
                &[
                    &Sql::same(quoted(random.pick(&["", "text ", "a"]))),
                    &number,
                ],
            ),
            Kind::Bytes => {
                let (one, other) = (bytes(random.pick(BYTES)), bytes(random.pick(BYTES)));
                Sql::of(
                    "case when {} % 2 = 0 then {} else {} end",
                    &[&number, &one, &other],
                )
            }
        };
        match self.is_nullable {
            true => Sql::of(
                "case when value % {} = 1 then null else {} end",
                &[&Sql::same((2 + random.below(30)).to_string()), &value],
            ),
            false => value,
        }
    }
}

impl Table {
    fn new(random: &mut Random, number: usize, is_large: bool) -> Self {
        let mut columns = Vec::new();
        for at in 0..4 + random.below(5) {
            let kind = match at {
                0 | 1 => Kind::Integer,
                2 => Kind::Text,
                _ => random.pick(&Kind::ALL),
            };
            let name = format!("{}{at}", letter(kind));
            let mut column = Column::new(random, name, kind);
            if at == 0 {
                column.declared = Sql::same("integer");
                column.spread = Spread::Unique;
                column.is_nullable = false;
            }
            columns.push(column);
        }
        let key = match random.below(10) {
            0..=1 => Vec::new(),
            2..=5 => vec![0],
            6..=7 => vec![1, 0],
            _ => vec![columns.len() - 1, 1, 0],
        };
        for &at in &key {
            columns[at].is_nullable = false;
        }
        Self {
            name: format!("t{number}"),
            columns,
            is_large,
            key,
            keys: HashSet::new(),
            next: 0,
            added: 0,
        }
    }

    /// Values of one row; `None` if its key is taken.
    fn row(&mut self, random: &mut Random) -> Option<Sql> {
        self.next += 1 + random.below(3) as i64;
        let mut values = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            values.push(match column.spread {
                // Not in the order in which they come.
                Spread::Unique => Sql::same((self.next * 7_919 % 100_003).to_string()),
                _ if column.is_nullable && random.chance(12) => Sql::same("null"),
                spread => literal(random, column.kind, spread),
            });
        }
        let unique = &values[0].ours;
        if !self.keys.insert(unique.clone()) {
            return None;
        }
        Some(Sql::of("({})", &[&Sql::join(&values, ", ")]))
    }

    /// Something that is true of some rows.
    fn condition(&self, random: &mut Random) -> Sql {
        let column = &self.columns[random.below(self.columns.len())];
        let name = Sql::same(&column.name);
        if column.spread == Spread::Unique {
            let rest = Sql::same((3 + random.below(20)).to_string());
            return Sql::of("{} % {} = 1", &[&name, &rest]);
        }
        let value = literal(random, column.kind, column.spread);
        match column.kind {
            Kind::Boolean => Sql::of("{} = {} and false", &[&name, &value]),
            _ if column.spread == Spread::Few => Sql::of("{} = {}", &[&name, &value]),
            _ => {
                let other = literal(random, column.kind, column.spread);
                let both = if random.chance(50) {
                    [&value, &other]
                } else {
                    [&other, &value]
                };
                Sql::of("{} between {} and {}", &[&name, both[0], both[1]])
            }
        }
    }
}

fn letter(kind: Kind) -> char {
    match kind {
        Kind::Integer => 'i',
        Kind::Bound => 'o',
        Kind::Decimal => 'c',
        Kind::Double => 'f',
        Kind::Boolean => 'b',
        Kind::Date => 'd',
        Kind::Time => 's',
        Kind::Text => 't',
        Kind::Bytes => 'x',
    }
}
