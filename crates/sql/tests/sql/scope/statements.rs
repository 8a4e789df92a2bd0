//! Tests of each kind of statement with partial rights.

use std::sync::Arc;

use orrery_sql::Session;

use super::{scope, scoped};
use crate::common::House;

const TABLES: &str = "
    create table seen (a int primary key, b int);
    create table rows (a int primary key, b text);
    create table hidden (a int primary key, b int);
    create table child (a int primary key, h int references hidden (a));
    create table parent (a int primary key, b int);
    create schema own; create schema dark;
    create table own.t (a int primary key, b int);
    create table own.u (a int primary key);
    create table dark.t (a int primary key, p int references parent (a));
    create view dark.v as select a from own.u;
    create view whole as select a, b from seen;
    create view half as select seen.a, hidden.b from seen join hidden on seen.a = hidden.a;
    insert into seen values (1, 10), (2, 20);
    insert into rows values (1, 'x');
    insert into hidden values (1, 100), (7, 700);
    insert into child values (1, 1);
    insert into parent values (1, 1), (2, 2);
    insert into own.t values (1, 1);
    insert into own.u values (1);
    insert into dark.t values (5, 1);
";

struct Place {
    house: House,
    root: Session,
    user: Session,
}

fn place() -> Place {
    let house = House::new();
    let root = house.session();
    house.done(&root, TABLES);
    let scope = scope(
        &["public.seen", "public.whole", "public.half"],
        &["public.rows", "public.child", "public.parent", "own"],
    );
    let user = scoped(house.session(), &scope);
    Place { house, root, user }
}

impl Place {
    fn rows(&self, text: &str) -> Vec<String> {
        self.house.rows(&self.user, text)
    }

    fn done(&self, text: &str) {
        self.house.done(&self.user, text);
    }

    fn code(&self, text: &str) -> &'static str {
        self.house.refused(&self.user, text).0
    }

    /// Refused with this code, and nothing is other than it was.
    fn refuses(&self, code: &str, texts: &[&str]) {
        let all = || {
            let tables = [
                "seen", "rows", "hidden", "child", "parent", "own.t", "dark.t",
            ];
            let mut all: Vec<_> = tables
                .iter()
                .map(|it| self.house.rows(&self.root, &format!("select * from {it}")))
                .collect();
            let relations = "select schema_name, name from orrery_catalog.relations";
            all.push(self.house.rows(&self.root, relations));
            all
        };
        let before = all();
        for text in texts {
            let error = self.house.run(&self.user, text).expect_err(text);
            assert_eq!(error.state.code(), code, "{text}: {error}");
            let told = format!("{error:?}").replace(text, "");
            // A name that the text has not is told by nobody.
            for name in ["hidden", "dark"] {
                assert!(
                    text.contains(name) || !told.contains(name),
                    "{text}: {told}"
                );
            }
        }
        assert_eq!(all(), before);
    }
}

#[test]
fn what_is_read_but_not_written_is_denied_and_what_is_hidden_is_not_there() {
    let place = place();
    place.refuses(
        "42501",
        &[
            "insert into seen values (3, 3)",
            "insert into seen select a, 1 from rows",
            "update seen set b = 1",
            "delete from seen",
            "truncate seen",
            "truncate rows, seen",
            "drop table seen",
            "drop view whole",
            "alter table seen add column c int",
            "create index on seen (b)",
            "insert into seen values (1, 1) on conflict (a) do nothing",
            "copy seen from '/dev/null'",
            "explain analyze select 1; update seen set b = 1",
        ],
    );
    place.refuses(
        "42P01",
        &[
            "select * from hidden",
            "insert into hidden values (3, 3)",
            "insert into rows select a, 'x' from hidden",
            "update hidden set b = 1",
            "update rows set b = (select max(b) from hidden)",
            "update rows set b = 'y' from hidden where hidden.a = rows.a",
            "delete from hidden",
            "delete from rows using hidden",
            "delete from rows where a in (select a from hidden) returning *",
            "delete from rows returning (select max(b) from hidden)",
            "truncate hidden",
            "truncate rows, hidden",
            "drop table hidden",
            "drop table own.t, hidden",
            "drop view hidden",
            "drop view dark.v",
            "alter table hidden add column c int",
            "create index on hidden (b)",
            "create table own.c as select * from hidden",
            "create table own.c (a int references hidden (a))",
            "alter table own.t add foreign key (b) references hidden (a)",
            "create view own.w as select * from hidden",
            "copy hidden to stdout",
            "explain select * from hidden",
            "explain analyze select * from hidden",
            "prepare p as select * from hidden",
            "select * from half",
            "select * from dark.t",
            "with q as (select * from hidden) select * from q",
            "select * from hidden for system_time as of '1'",
        ],
    );
    place.refuses(
        "3F000",
        &["drop schema dark", "create table dark.x (a int)"],
    );
    // Nothing of it is done where what was named is not there.
    for text in [
        "drop table if exists hidden",
        "drop view if exists dark.v, half",
        "drop schema if exists dark cascade",
        "alter table if exists hidden drop column b",
        "drop index if exists dark.t_pkey",
    ] {
        place.done(text);
    }
    assert_eq!(
        place.house.rows(&place.root, "select count(*) from hidden"),
        ["2"]
    );
    assert_eq!(
        place.house.rows(&place.root, "select count(*) from half"),
        ["1"]
    );
    assert_eq!(
        place.house.rows(&place.root, "select count(*) from dark.v"),
        ["1"]
    );
}

#[test]
fn rows_are_changed_by_who_may_write_the_table_and_definitions_by_who_may_write_the_schema() {
    let place = place();
    place.done("insert into rows select a + 1, 'y' from seen");
    place.done("update rows set b = 'z' where a = 1");
    assert_eq!(place.rows("select b from rows order by a"), ["z", "y", "y"]);
    place.done("insert into rows values (1, 'q') on conflict (a) do update set b = excluded.b");
    assert_eq!(
        place.rows("delete from rows where a = 1 returning b"),
        ["q"]
    );
    place.done("truncate rows");
    for text in [
        "create table mine (a int)",
        "create table dark (a int)",
        "create table hidden (a int)",
        "create table if not exists hidden (a int)",
        "create table seen as select 1 as one",
        "create view w as select 1 as one",
        "create view hidden as select 1 as one",
        "drop table rows",
        "alter table rows add column c int",
        "alter table rows rename to hidden",
        "create index on rows (b)",
        "create index hidden on rows (b)",
        "create schema dark",
        "create schema if not exists dark",
        "create schema new",
        "drop schema if exists public",
        // Whoever owns what is referred to could not delete it any more.
        "create table own.e (s int references seen (a))",
        "alter table own.t add foreign key (b) references seen (a)",
        "alter table own.t add column s int references seen (a)",
    ] {
        assert_eq!(place.code(text), "42501", "{text}");
    }
    for text in [
        "insert into rows values (1, 'again')",
        "create table own.c (a int primary key, s int references rows (a))",
        "insert into own.c values (1, 1)",
        "create view own.w as select c.a, seen.b from own.c join seen on c.s = seen.a",
        "alter table own.t add column c int default 4",
        "create index on own.t (c)",
        "create table own.d as select * from own.t",
    ] {
        place.done(text);
    }
    assert_eq!(place.rows("select * from own.w"), ["1 10"]);
    assert_eq!(place.rows("select c from own.d"), ["4"]);
    place.done("drop view own.w; drop table own.c, own.d");
}

#[test]
fn what_hidden_tables_hold_is_told_by_no_foreign_key_and_no_view() {
    let place = place();
    // Whether 1 and 7 are in `hidden`, and 1 and 2 in `dark.t`, would be told by what comes of it.
    place.refuses(
        "42501",
        &[
            "insert into child values (2, 7)",
            "insert into child values (3, 8)",
            "update child set h = 7",
            "delete from parent where a = 1",
            "delete from parent where a = 2",
            "update parent set a = 9 where a = 2",
            "truncate parent",
            "insert into parent values (1, 1) on conflict (a) do update set b = 2",
        ],
    );
    place.done("delete from child");
    place.done("insert into parent values (3, 3) on conflict (a) do nothing");
    // Nor are they named in what is listed.
    let listed = "select constraint_name from information_schema.referential_constraints";
    assert_eq!(place.rows(listed), [""; 0]);
    let listed = "select table_name from information_schema.tables order by table_name";
    let expected = ["child", "parent", "rows", "seen", "t", "u", "whole"];
    assert_eq!(place.rows(listed), expected);
    // A hidden view reads it: that something does is told, what it is not.
    place.refuses(
        "2BP01",
        &["drop table own.u", "alter table own.u rename to x"],
    );
    place.refuses(
        "42501",
        &["drop table own.u cascade", "drop schema own cascade"],
    );
    place.done("alter table own.u add column b int");
    // The foreign key that is not shown is there still.
    place
        .house
        .done(&place.root, "insert into child values (4, 7)");
    let broken = place
        .house
        .refused(&place.root, "insert into child values (5, 9)");
    assert_eq!(broken.0, "23503");
}

#[test]
fn prepared_statements_and_blocks_follow_the_rights_of_now() {
    let mut place = place();
    let query = "select b from seen where a = $1";
    let prepared = place
        .house
        .threads
        .block_on(place.user.prepare(query))
        .unwrap();
    let run = |place: &Place| {
        let values = [1.into()];
        let run = place.user.run(&prepared, &values);
        place.house.threads.block_on(run).map(drop)
    };
    // So often that nothing is planned any more.
    for _ in 0..4 {
        run(&place).unwrap();
    }
    place.done("prepare named as select b from seen");
    place.done("execute named");
    place.done("begin; insert into rows values (8, 'begun')");
    let less = scope(&["public.rows"], &[]);
    place.user.set_scope(Some(Arc::clone(&less)));
    assert_eq!(place.code("insert into rows values (9, 'late')"), "42501");
    place.done("rollback");
    assert_eq!(run(&place).unwrap_err().state.code(), "42P01");
    assert_eq!(place.code("execute named"), "42P01");
    assert_eq!(place.rows("select count(*) from rows"), ["1"]);
    // Also at old states.
    let commit = place.house.commit();
    let old =
        |table: &str| format!("select count(*) from {table} for system_time as of '{commit}'");
    assert_eq!(place.rows(&old("rows")), ["1"]);
    assert_eq!(place.code(&old("seen")), "42P01");
    place.user.set_scope(None);
    run(&place).unwrap();
    place.done("insert into rows values (9, 'again')");
    assert_eq!(place.rows(&old("hidden")), ["2"]);
}

#[test]
fn a_cursor_ends_with_the_right_to_what_it_reads() {
    let mut place = place();
    let read = scope(&["public.seen"], &["public.rows"]);
    place.user.set_scope(Some(Arc::clone(&read)));
    place.done("begin; declare c cursor for select a from seen order by a");
    assert_eq!(place.rows("fetch next from c"), ["1"]);
    // Rules were read again, and say the same.
    place
        .user
        .set_scope(Some(scope(&["public.seen"], &["public.rows"])));
    assert_eq!(place.rows("fetch next from c"), ["2"]);
    place.done("rollback");
    place.user.set_scope(Some(read));
    place.done("begin; declare c cursor for select a from seen order by a");
    assert_eq!(place.rows("fetch next from c"), ["1"]);
    place.user.set_scope(Some(scope(&["public.rows"], &[])));
    assert_eq!(place.code("fetch next from c"), "42501");
    place.done("rollback");
}

#[test]
fn numbers_of_objects_have_no_gaps_where_others_are_hidden() {
    let place = place();
    let numbers = "select oid from pg_class where oid > 16384 and oid < 268435456 order by oid";
    let count = |numbers: &[String]| -> Vec<String> {
        (16_385..)
            .take(numbers.len())
            .map(|number: u32| number.to_string())
            .collect()
    };
    let found = place.rows(numbers);
    assert_eq!(found, count(&found));
    let named = "select cast('own.u' as regclass)::oid = (select c.oid from pg_class c join pg_namespace n on c.relnamespace = n.oid where relname = 'u' and nspname = 'own')";
    assert_eq!(place.rows(named), ["true"]);
    place.house.done(
        &place.root,
        "create table dark.more (a int primary key, b int unique)",
    );
    assert_eq!(place.rows(numbers), found);
    place.done("create table own.later (a int primary key, b int unique)");
    let now = place.rows(numbers);
    assert!(now.len() > found.len());
    assert_eq!(now, count(&now));
}

#[test]
fn files_other_servers_and_mapped_graphs_are_for_who_may_change_everything() {
    let place = place();
    for text in [
        "create external table own.e stored as csv location '/etc/passwd'",
        "copy rows from '/etc/passwd'",
        "copy (select 1) to '/tmp/x.csv'",
        "select * from '/etc/passwd'",
        "create graph 'http://e/g' from tables own",
        "drop graph mapping if exists 'http://e/g'",
        "materialize graph 'http://e/g'",
    ] {
        assert_eq!(place.code(text), "42501", "{text}");
    }
}
