//! Tests of pushed-down filters, which must mean the same at the foreign server.

use orrery_sql::ForeignAccess;

use crate::foreign::cluster::{Source, source};
use crate::support::Place;

const ITEMS: &str = "create table item (id int primary key, name varchar(20), price numeric(10,2), weight double precision, kind char(4), sold date, at timestamp, is_new boolean,
       code uuid);
    insert into item select i, case when i % 7 = 0 then null else chr(97 + i % 5) || upper(chr(97 + i % 3)) || i % 11 end, case when i % 5 = 0 then null else (i % 40) / 4.0 end,
       case i % 6 when 0 then null when 1 then 'NaN' when 2 then -0.0 else i / 3.0 end, case when i % 4 = 0 then null else substr('abc ', 1, i % 4) end,
       date '2024-01-01' + i % 30, timestamp '2024-01-01' + i % 30 * interval '1 hour', case when i % 3 = 0 then null else i % 2 = 0 end,
       ('00000000-0000-0000-0000-' || lpad((i % 50)::text, 12, '0'))::uuid
     from generate_series(1, 400) as i;
    analyze item";

async fn statement(place: &Place, query: &str) -> String {
    let plan = place
        .rows(&format!("explain {query}"))
        .await
        .unwrap()
        .join("\n");
    let (_, sent) = plan
        .split_once("statement=")
        .unwrap_or_else(|| panic!("{plan}"));
    sent.lines().next().unwrap_or_default().trim().to_owned()
}

async fn items() -> Option<(Source, Place)> {
    let source = source()?;
    source.psql(ITEMS);
    let place = Place::with_foreign(&ForeignAccess::anywhere(None));
    place.run(&source.create("item", "")).await.unwrap();
    Some((source, place))
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_the_statement_that_is_sent() {
    let Some((_source, place)) = items().await else {
        return;
    };
    let cases = [
        (
            "select name from item where id = 5",
            "SELECT \"name\" FROM \"public\".\"item\" WHERE (\"id\" = 5)",
        ),
        (
            "select id from item where id in (1, 2, 30, 40, 50)",
            "SELECT \"id\" FROM \"public\".\"item\" WHERE (\"id\" IN (1, 2, 30, 40, 50))",
        ),
        (
            "select id from item where name = 'a''b'",
            "SELECT \"id\" FROM \"public\".\"item\" WHERE (\"name\" = 'a''b')",
        ),
        (
            "select id from item where name < 'b'",
            "SELECT \"id\" FROM \"public\".\"item\" WHERE (\"name\" COLLATE \"C\" < 'b')",
        ),
        (
            "select id from item where name like 'a%'",
            "SELECT \"id\" FROM \"public\".\"item\" WHERE (\"name\" LIKE 'a%')",
        ),
        (
            "select id from item where price > 1.5 and is_new",
            "SELECT \"id\" FROM \"public\".\"item\" WHERE (\"price\" > '1.50'::numeric) AND \"is_new\"",
        ),
        (
            "select id from item where sold = date '2024-01-05' or kind is null",
            "SELECT \"id\" FROM \"public\".\"item\" WHERE ((\"sold\" = '2024-01-05'::date) OR (\"kind\" IS NULL))",
        ),
        (
            "select id from item where kind = 'ab'",
            "SELECT \"id\" FROM \"public\".\"item\" WHERE (\"kind\" = 'ab'::bpchar)",
        ),
        (
            "select id from item where id between 3 and 5 limit 2",
            "SELECT \"id\" FROM \"public\".\"item\" WHERE (\"id\" >= 3) AND (\"id\" <= 5) LIMIT 2",
        ),
        (
            "select count(*) from item",
            "SELECT FROM \"public\".\"item\"",
        ),
        // These stay here.
        (
            "select id from item where id + 1 = 5",
            "SELECT \"id\" FROM \"public\".\"item\"",
        ),
        (
            "select id from item where upper(name) = 'A' limit 2",
            "SELECT \"id\", \"name\" FROM \"public\".\"item\"",
        ),
        (
            "select id from item where name ilike 'a%'",
            "SELECT \"id\", \"name\" FROM \"public\".\"item\"",
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(statement(&place, query).await, expected, "{query}");
    }
    assert_eq!(
        place
            .rows("select count(*) from (select id from item limit 7) t")
            .await
            .unwrap(),
        ["7"]
    );
}

/// Numbers that are the same each time (Knuth's).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    fn condition(&mut self, depth: u64) -> String {
        if depth > 0 && self.below(3) > 0 {
            let (one, other) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.below(4) {
                0 => format!("not ({one})"),
                1 => format!("({one} or {other})"),
                2 => format!("({one}) is not true"),
                _ => format!("({one} and {other})"),
            };
        }
        let columns: [(&str, &[&str]); 8] = [
            ("id", &["7", "-1", "200", "399"]),
            ("name", &["'a'", "'bB3'", "'aA0'", "'B'", "''", "'c'"]),
            ("price", &["1.5", "0", "2.255", "9.75", "-3"]),
            (
                "weight",
                &[
                    "0.0",
                    "-0.0",
                    "'NaN'::double precision",
                    "33.333333333333336",
                    "1e300",
                ],
            ),
            ("kind", &["'ab'", "'a'", "'ab '", "''", "'abc '"]),
            (
                "sold",
                &[
                    "date '2024-01-05'",
                    "date '2024-02-29'",
                    "date '0001-01-01'",
                ],
            ),
            (
                "at",
                &[
                    "timestamp '2024-01-01 05:00:00'",
                    "timestamp '1969-12-31 23:59:59.5'",
                ],
            ),
            (
                "code",
                &[
                    "'00000000-0000-0000-0000-000000000007'",
                    "'00000000'",
                    "'X'",
                ],
            ),
        ];
        let (column, values) = columns[usize::try_from(self.below(8)).unwrap()];
        match self.below(8) {
            0 => format!("{column} is null"),
            1 => format!("{column} is not null"),
            2 => {
                let values = [self.one(values), self.one(values), self.one(values)];
                format!(
                    "{column} {} ({})",
                    self.one(&["in", "not in"]),
                    values.join(", ")
                )
            }
            3 => format!(
                "{column} between {} and {}",
                self.one(values),
                self.one(values)
            ),
            4 => format!(
                "name {} {}",
                self.one(&["like", "not like"]),
                self.one(&["'a%'", "'_B%'", "'%1'", "'aA0'", "'%'"])
            ),
            5 => format!(
                "kind {} {}",
                self.one(&["like", "not like"]),
                self.one(&["'a%'", "'ab'", "'%b_'", "'a '"])
            ),
            6 => self
                .one(&[
                    "is_new",
                    "not is_new",
                    "is_new is unknown",
                    "is_new is not false",
                ])
                .to_owned(),
            _ => format!(
                "{column} {} {}",
                self.one(&["=", "<>", "<", "<=", ">", ">=", "is distinct from"]),
                self.one(values)
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_are_sent_find_what_they_find_here() {
    let Some((_source, place)) = items().await else {
        return;
    };
    place
        .run(
            "create table own (id int primary key, name varchar(20), price numeric(10,2), weight double precision, kind char(4), sold date, at timestamp, is_new boolean, code text);
             insert into own select * from item",
        )
        .await
        .unwrap();
    let mut chance = Chance(15);
    let mut sent = 0;
    for round in 0..400 {
        let condition = chance.condition(round % 3);
        let of = |table: &str| format!("select id from {table} where {condition} order by id");
        let (here, there) = (place.rows(&of("own")).await, place.rows(&of("item")).await);
        assert_eq!(there, here, "{condition}");
        let plan = place.rows(&format!("explain {}", of("item"))).await;
        let is_sent = plan.is_ok_and(|plan| plan.join("\n").contains("\" WHERE "));
        sent += usize::from(here.is_ok() && is_sent);
    }
    // Not all: some are folded to nothing, some have no values that fit.
    assert!(sent > 200, "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_small_side_go_to_the_large_one_and_scans_of_a_statement_see_one_state() {
    let Some((source, place)) = items().await else {
        return;
    };
    source.psql("create table large (id int primary key, item int, x text); insert into large select i, i % 400, 'x' || i from generate_series(1, 60000) as i; analyze large");
    place.run(&source.create("large", "")).await.unwrap();
    place.run("create table few (item int primary key, word text); insert into few values (17, 'a'), (399, 'b')").await.unwrap();
    let query = "select few.word, count(*), min(large.x) from few join large on few.item = large.item group by few.word order by 1";
    assert_eq!(
        place.rows(query).await.unwrap(),
        ["a 150 x10017", "b 150 x10399"]
    );
    let log = source.cluster.logged("\"large\"");
    assert!(
        log.iter()
            .any(|line| line.contains("IN (17, 399)") || line.contains("(\"item\" >= 17)")),
        "{log:?}"
    );
    // Two scans of one server.
    let query = "select count(*) from item join large on item.id = large.item where item.id < 3";
    assert_eq!(place.rows(query).await.unwrap(), ["300"]);
    assert!(source.cluster.logged("SET TRANSACTION SNAPSHOT").len() >= 2);
    // And the connections are as they were: another statement alone, without a transaction.
    assert_eq!(
        place
            .rows("select count(*) from large where id < 0")
            .await
            .unwrap(),
        ["0"]
    );
    let open = "select count(*) from pg_stat_activity where application_name = 'orrery' and state like 'idle in%' and datname = current_database()";
    for _ in 0..200 {
        if source.psql(open) == "0" {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("a transaction is left open");
}
