//! Random tests of rights: an asker gets what everybody gets from a database with only the readable
//! tables.

use std::fmt::Write as _;

use orrery_sql::{Error, Session};

use super::{scope, scoped};
use crate::common::House;

const SEEDS: u64 = 12;
const STATEMENTS: usize = 40;

/// Pseudo-random numbers (Knuth's MMIX), the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn one_of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }

    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const TABLES: [&str; 6] = [
    "public.t1",
    "public.t2",
    "sales.t1",
    "sales.t3",
    "hr.t2",
    "hr.t4",
];

/// Tables that others refer to come first.
const REFERENCES: [(&str, &str); 3] = [
    ("public.t2", "public.t1"),
    ("sales.t3", "hr.t4"),
    ("hr.t2", "public.t1"),
];

const VIEWS: [(&str, &[&str], &str); 4] = [
    (
        "public.v1",
        &["public.t1"],
        "select a, b, c from public.t1 where a > 1",
    ),
    (
        "sales.v2",
        &["sales.t1", "public.t2"],
        "select x.a, x.b, y.c from sales.t1 x join public.t2 y on x.a = y.a",
    ),
    (
        "hr.v3",
        &["public.v1", "public.t1"],
        "select a, b, c from public.v1",
    ),
    ("hr.v4", &["hr.t4"], "select a, b, c from hr.t4"),
];

/// What a database with some of the tables is made of.
fn script(has: &dyn Fn(&str) -> bool) -> String {
    let mut text = String::from("create schema spare; drop schema spare;");
    let schema_of = |name: &'static str| name.split('.').next().unwrap();
    for schema in ["sales", "hr"] {
        let mut inside = TABLES
            .into_iter()
            .chain(VIEWS.iter().map(|(view, ..)| *view));
        if has(schema) || inside.any(|name| schema_of(name) == schema && has(name)) {
            write!(text, "create schema {schema};").unwrap();
        }
    }
    for (number, table) in TABLES.into_iter().enumerate() {
        if !has(table) {
            continue;
        }
        write!(
            text,
            "create table {table} (a int primary key, b int, c text);"
        )
        .unwrap();
        for row in 0..5 + number {
            let b = (row * 7 + number) % 5 + 1;
            write!(
                text,
                "insert into {table} values ({}, {b}, 'c{}');",
                row + 1,
                row % 3
            )
            .unwrap();
        }
        write!(
            text,
            "create index {}_b on {table} (b);",
            table.replace('.', "_")
        )
        .unwrap();
    }
    for (from, to) in REFERENCES {
        if has(from) && has(to) {
            let name = from.replace('.', "_");
            write!(
                text,
                "alter table {from} add constraint {name}_key foreign key (b) references {to} (a);"
            )
            .unwrap();
        }
    }
    for (view, _, query) in VIEWS {
        if has(view) {
            write!(text, "create view {view} as {query};").unwrap();
        }
    }
    text
}

fn query(dice: &mut Dice) -> String {
    let views = VIEWS.iter().map(|(view, ..)| *view);
    let mut all: Vec<&str> = TABLES.into_iter().chain(views).collect();
    all.extend(["t1", "t2", "v1", "hr.nothing", "nowhere.t1"]);
    let (x, y, z) = (dice.one_of(&all), dice.one_of(&all), dice.one_of(&all));
    let (n, m) = (dice.below(7), dice.below(4));
    let what = [
        format!("select * from {x} where b >= {n}"),
        format!("select x.a, y.c from {x} x join {y} y on x.a = y.b where x.b <> {m}"),
        format!("select x.a, y.a from {x} x left join {y} y on x.b = y.a and y.c <> 'c{m}'"),
        format!("select c, count(*), sum(a) as total from {x} group by c having count(*) > {m}"),
        format!("select (select max(a) from {y}) as m, count(*) as n from {x}"),
        format!("select a from {x} where a in (select b from {y} where b < {n})"),
        format!("select a from {x} q where not exists (select 1 from {y} w where w.b = q.a)"),
        format!("select a, c from {x} union select b, c from {y} union all select a, c from {z}"),
        format!(
            "with q as (select a, b from {x}), w as (select b, c from {y}) select q.a, w.c from q, w where q.a = w.b"
        ),
        format!("select a, row_number() over (order by a) as place from {x} order by a limit {n}"),
        format!("select a from {x} where a = {n} and b = any (select a from {y})"),
        format!("select t.c from {x} t, lateral (select count(*) as n from {y} u where u.a = t.b) l"),
        format!("explain select count(*) from {x} x join {y} y on x.a = y.a"),
        format!("select aa, {y}.c from {x}"),
        format!("select * from {x}x"),
        format!("copy {x} to stdout"),
        "select table_schema, table_name, table_type from information_schema.tables".to_owned(),
        "select table_name, column_name, ordinal_position, data_type from information_schema.columns"
            .to_owned(),
        "select schema_name from information_schema.schemata".to_owned(),
        "select table_schema, table_name, view_definition from information_schema.views".to_owned(),
        "select table_name, constraint_name, constraint_type from information_schema.table_constraints"
            .to_owned(),
        "select constraint_name, unique_constraint_schema, unique_constraint_name from information_schema.referential_constraints"
            .to_owned(),
        "select table_name, column_name, constraint_name from information_schema.key_column_usage"
            .to_owned(),
        "select relname, relkind, reltuples, relhastriggers from pg_class".to_owned(),
        "select conname, contype, pg_get_constraintdef(oid) as words from pg_constraint".to_owned(),
        "select nspname from pg_namespace".to_owned(),
        "select schemaname, tablename from pg_tables".to_owned(),
        "select schemaname, viewname, definition from pg_views".to_owned(),
        "select schemaname, tablename, indexname, indexdef from pg_indexes".to_owned(),
        "select count(*) as n from pg_depend".to_owned(),
        "select * from orrery_catalog.relations".to_owned(),
        "select * from orrery_catalog.constraints".to_owned(),
        format!("select to_regclass('{x}') is null as none"),
        "show tables".to_owned(),
        format!("prepare p as select a from {x} where b = $1"),
        format!("describe {x}"),
    ];
    what[dice.below(what.len())].clone()
}

fn change(dice: &mut Dice) -> String {
    let views = VIEWS.iter().map(|(view, ..)| *view);
    let all: Vec<&str> = TABLES.into_iter().chain(views).collect();
    let (x, y) = (dice.one_of(&all), dice.one_of(&all));
    let (n, key) = (dice.below(7), 100 + dice.below(1_000));
    let schema = dice.one_of(&["public", "sales", "hr", "new"]);
    let what = [
        format!("insert into {x} values ({key}, null, 'new')"),
        format!("insert into {x} select a + {key}, null, c from {y} where a > {n} returning a, c"),
        format!("update {x} set c = 'changed' where b = {n} returning *"),
        format!("update {x} set c = y.c from {y} y where y.a = {x}.a"),
        format!("delete from {x} where a > {key} or a in (select a + {key} from {y})"),
        format!("delete from {x} where a = {n}"),
        format!("truncate {x}, {y}"),
        format!("create table {schema}.k{key} as select a from {y}"),
        format!("create table if not exists {x} (a int)"),
        format!("create table {schema}.f{key} (a int references {y} (a))"),
        format!("create view {schema}.w{key} as select c from {y}"),
        format!("create index on {x} (c)"),
        format!("alter table {x} add column d{key} int"),
        format!("alter table if exists {x} add constraint k{key} check (a > -1)"),
        format!("drop table if exists {x}, {y}"),
        format!("drop view {x}"),
        format!("drop index if exists {}_b", x.replacen('.', "_", 1)),
        format!("create schema if not exists {schema}"),
        format!("drop schema {schema} cascade"),
        "create external table e (a int) stored as csv location '/etc/passwd'".to_owned(),
    ];
    what[dice.below(what.len())].clone()
}

/// What a client is told, without the order of rows.
fn told(house: &House, session: &Session, text: &str) -> Result<(String, Vec<String>), Error> {
    if text.starts_with("copy") {
        let [statement] = &session.statements(text)?[..] else {
            unreachable!()
        };
        let outcome = house.threads.block_on(session.execute(statement));
        return outcome.map(|_| Default::default());
    }
    let answer = house.run(session, text)?;
    let columns = answer
        .schema
        .fields()
        .iter()
        .map(|field| format!("{field}"));
    let columns: Vec<String> = columns.collect();
    let mut lines = answer.lines();
    lines.sort();
    Ok((format!("{} {}", answer.tag, columns.join(", ")), lines))
}

#[test]
fn answers_are_those_over_a_database_that_has_only_what_may_be_read() {
    let (mut rows, mut errors, mut changed, mut denied) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut dice = Dice(seed);
        let views = VIEWS.iter().map(|(view, ..)| *view);
        let all = TABLES.into_iter().chain(views).chain(["sales", "hr"]);
        let all: Vec<&str> = all.collect();
        let share = |it: &&str| if it.contains('.') { 60 } else { 20 };
        let reads: Vec<&str> = all
            .iter()
            .copied()
            .filter(|it| dice.is(share(it)))
            .collect();
        let writes: Vec<&str> = all.iter().copied().filter(|_| dice.is(20)).collect();
        let scope = scope(&reads, &writes);
        let listed = scope.reads.clone().unwrap();
        let may_read = |name: &str| match name.split_once('.') {
            Some((schema, table)) => listed.contains(schema, table),
            None => listed.schemas.contains(name),
        };
        let has = |name: &str| {
            let view = VIEWS.iter().find(|(view, ..)| *view == name);
            let parts = view.map_or(&[][..], |(_, parts, _)| parts);
            // `hr.v3` reads another view.
            may_read(name) && parts.iter().all(|part| may_read(part))
        };
        let (whole, part) = (House::new(), House::new());
        whole.done(&whole.session(), &script(&|_| true));
        part.done(&part.session(), &script(&has));
        let session = scoped(whole.session(), &scope);
        let (everybody, same_rights) = (part.session(), scoped(part.session(), &scope));
        for _ in 0..STATEMENTS {
            let text = query(&mut dice);
            let answer = told(&whole, &session, &text);
            let expected = told(&part, &everybody, &text);
            assert_eq!(
                answer, expected,
                "seed {seed}, {reads:?}, {writes:?}: {text}"
            );
            match answer {
                Ok(_) => rows += 1,
                Err(_) => errors += 1,
            }
            if dice.is(50) {
                continue;
            }
            let text = change(&mut dice);
            let answer = told(&whole, &session, &text);
            if let Err(error) = &answer
                && is_bound_to_hidden(error)
            {
                continue;
            }
            let expected = told(&part, &same_rights, &text);
            assert_eq!(
                answer, expected,
                "seed {seed}, {reads:?}, {writes:?}: {text}"
            );
            match answer {
                Ok(_) => changed += 1,
                Err(_) => denied += 1,
            }
        }
    }
    // All four are what is to be shown.
    assert!(rows > 150 && errors > 80, "{rows} and {errors}");
    assert!(changed > 15 && denied > 80, "{changed} and {denied}");
}

/// What nobody may change because something depends on it that is hidden: it is told that there is
/// something.
fn is_bound_to_hidden(error: &Error) -> bool {
    let detail = error.detail.as_deref().unwrap_or_default();
    detail.contains("a foreign key from or to a table that may not be read")
        || error.state.code() == "2BP01"
        || error.message.contains("other objects that depend on it")
}
