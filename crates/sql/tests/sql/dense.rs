//! Tests of dense aggregation and pushed-down join keys: the same answers as without.

use crate::common::House;
use datafusion::physical_plan::displayable;
use orrery_sql::Session;

fn plan(house: &House, session: &Session, text: &str) -> String {
    let planned = house.threads.block_on(session.plan(text)).unwrap();
    displayable(planned.plan().as_ref())
        .indent(false)
        .to_string()
}

/// The rows of a query in some order.
fn sorted(house: &House, session: &Session, text: &str) -> Vec<String> {
    let mut rows = house.rows(session, text);
    rows.sort();
    rows
}

/// Orders with prices, discounts, colors and days.
fn sales() -> House {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table number as select value from generate_series(0, 49999);
         create table sale (id int primary key, color text not null, flag char(1) not null, shop smallint not null, day date not null,
             price decimal(15,2) not null, discount decimal(15,2) not null, wide decimal(30,4) not null, pieces int not null, note text,
             maybe decimal(15,2), big bigint not null);
         insert into sale select value, 'color' || value % 7, case value % 3 when 0 then 'a' else 'b' end, cast(value % 40 - 20 as smallint),
             date '1995-01-01' + cast(value % 2500 as int), cast(value * 37 % 100000 as decimal(15,2)) / 100 - 300,
             cast(value % 11 as decimal(15,2)) / 100, cast(value + 0 as decimal(30,4)), value % 50, 'note' || value,
             case when value % 5 = 0 then null else cast(value as decimal(15,2)) end, value * 1000000007
             from number",
    );
    house
}

const GROUPED: &[&str] = &[
    "select color, flag, sum(price), sum(price * (1 - discount)), sum(price * (1 - discount) * (1 + discount)), avg(price), avg(discount), count(*) from FROM group by color, flag",
    "select shop, min(price), max(price), min(day), max(day), sum(pieces), count(pieces) from FROM group by shop",
    "select day, count(*), sum(price - discount) from FROM group by day",
    "select flag, shop, sum(price + 1.5), sum(-1 * price), max(pieces) from FROM group by shop, flag",
    "select count(*), sum(price), avg(price), min(pieces), max(day) from FROM",
    "select sum(price * discount * 0.25) from FROM",
    "select color, count(*) from FROM group by color having count(*) > 1000",
    "select sum(big), min(big) from FROM",
];

const CONDITIONS: &[&str] = &[
    "true",
    "day < date '1995-03-01'",
    "day < date '2001-09-09'",
    "price > 0 and color <> 'color3'",
    "pieces between 3 and 40 and flag = 'b'",
    "id >= 40000",
    "note like '%77%'",
    "pieces > 1000",
];

/// Each question as a scan answers it, and over the same rows behind a limit, which no table of
/// groups is for.
fn compare(house: &House, session: &Session) {
    for question in GROUPED {
        for condition in CONDITIONS {
            let dense = question.replace("FROM", &format!("sale where {condition}"));
            let plain = format!("(select * from sale where {condition} limit 1000000) sale");
            let plain = question.replace("FROM", &plain);
            // `where` stands before `group by` in the one, and within the brackets in the other.
            let found = sorted(house, session, &dense);
            assert_eq!(found, sorted(house, session, &plain), "{dense}");
        }
    }
}

#[test]
fn dense_groups_are_the_groups_of_the_rows() {
    let house = sales();
    let session = house.session();
    for question in GROUPED {
        let dense = plan(&house, &session, &question.replace("FROM", "sale"));
        assert!(dense.contains("DenseAggregateExec"), "{dense}");
        let over = "(select * from sale limit 1000000) sale";
        let plain = plan(&house, &session, &question.replace("FROM", over));
        assert!(!plain.contains("DenseAggregateExec"), "{plain}");
    }
    compare(&house, &session);
}

#[test]
fn dense_groups_of_one_partition_are_the_groups_of_the_rows() {
    let house = sales().on_one_thread();
    let session = house.session();
    for question in GROUPED {
        let dense = plan(&house, &session, &question.replace("FROM", "sale"));
        assert!(dense.contains("DenseAggregateExec"), "{dense}");
        assert!(!dense.contains("mode=Single"), "{dense}");
    }
    compare(&house, &session);
    house.done(&session, "insert into sale select id + 100000, color, flag, shop, day, price, discount, wide, pieces, note, maybe, big from sale where id < 77");
    compare(&house, &session);
}

#[test]
fn dense_groups_have_rows_that_are_not_in_the_file_yet() {
    let house = sales();
    let session = house.session();
    house.done(
        &session,
        "insert into sale values (-5, 'violet', 'z', 300, date '2030-01-01', 9999999999.99, 0.5, 1, 7, null, null, 1),
             (70000, 'color1', 'a', 3, date '1995-01-02', -0.01, 0, 1, -7, null, 1, 2);
         delete from sale where id % 1000 = 3;
         update sale set price = price + 1000000, color = 'new' where id % 5000 = 7",
    );
    let text = GROUPED[0].replace("FROM", "sale");
    assert!(plan(&house, &session, &text).contains("DenseAggregateExec"));
    compare(&house, &session);
    let count = "select count(*) from sale where color in ('violet', 'new')";
    assert_eq!(house.rows(&session, count), ["11"]);
}

#[test]
fn sums_that_may_overflow_and_columns_with_null_are_not_aggregated_densely() {
    let house = sales();
    let session = house.session();
    for question in [
        // NULL, 30 digits, a function, what is beyond 64 bits.
        "select sum(maybe) from sale",
        "select count(maybe) from sale",
        "select sum(wide) from sale",
        "select sum(abs(price)) from sale",
        "select sum(price * price * price * price * price) from sale",
        "select note, count(*) from sale group by note",
        "select sum(price) filter (where flag = 'a') from sale",
        "select avg(pieces) from sale",
    ] {
        let plan = plan(&house, &session, question);
        assert!(!plan.contains("DenseAggregateExec"), "{question}: {plan}");
        house.done(&session, question);
    }
    // No row at all.
    house.done(
        &session,
        "create table none (a int primary key, b decimal(9,2) not null)",
    );
    assert_eq!(
        house.rows(
            &session,
            "select count(*), sum(b), avg(b), min(a) from none"
        ),
        ["0 NULL NULL NULL"]
    );
    let nobody = "select count(*), sum(price), avg(price), min(day) from sale where pieces > 1000";
    assert_eq!(house.rows(&session, nobody), ["0 NULL NULL NULL"]);
}

#[test]
fn scans_are_filtered_by_the_keys_of_joins() {
    let house = sales();
    let session = house.session();
    house.done(
        &session,
        "create table shop (s smallint primary key, town text not null);
         insert into shop select cast(value - 30 as smallint), 'town' || value % 4 from number where value < 45;
         create table pick (p int primary key, sale int);
         insert into pick select value, case when value % 4 = 0 then null else value * 7 end from number where value < 20000",
    );
    for (question, is_told) in [
        (
            "select count(*), sum(price) from sale, pick where pick.sale = sale.id and pick.p < 900",
            true,
        ),
        (
            "select count(*) from sale where id in (select sale from pick where p % 3 = 1)",
            true,
        ),
        (
            "select count(*) from sale where id not in (select sale from pick where sale is not null and p % 3 = 1)",
            false,
        ),
        (
            "select town, count(*) from sale join shop on s = shop and town < 'town2' where pieces < 9 group by town",
            true,
        ),
        (
            "select count(*), count(p) from sale left join pick on pick.sale = id and p < 500",
            false,
        ),
    ] {
        let told = plan(&house, &session, question);
        assert_eq!(
            told.contains("keys of joins"),
            is_told,
            "{question}: {told}"
        );
        // Behind a limit nothing is told.
        let plain = question
            .replace("from sale", "from (select * from sale limit 1000000) sale")
            .replace(
                ", pick where",
                ", (select * from pick limit 1000000) pick where",
            )
            .replace(
                "join shop on s = shop",
                "join (select * from shop limit 1000) shop on s = shop",
            )
            .replace(
                "join pick on",
                "join (select * from pick limit 1000000) pick on",
            );
        let plan_of_plain = plan(&house, &session, &plain);
        assert!(!plan_of_plain.contains("keys of joins"), "{plan_of_plain}");
        let rows = sorted(&house, &session, question);
        assert_eq!(rows, sorted(&house, &session, &plain), "{question}");
        assert_ne!(rows, Vec::<String>::new());
    }
    // Keys that are in no file yet, on both sides, and rows that are gone.
    let text = "select count(*), sum(id) from sale, pick where pick.sale = sale.id";
    let before = house.rows(&session, text);
    house.done(
        &session,
        "insert into sale select 200000 + value, color, flag, shop, day, price, discount, wide, pieces, note, maybe, big from number, sale where value < 10 and id = 5;
         insert into pick select value, value + 0 from generate_series(200000, 200019);
         delete from sale where id = 7",
    );
    let after = house.rows(&session, text);
    assert_ne!(before, after);
    let plain = text.replace(
        "from sale,",
        "from (select * from sale limit 1000000) sale,",
    );
    assert_eq!(after, house.rows(&session, &plain));
}

#[test]
fn scans_below_groups_are_filtered_by_single_keys_of_joins() {
    let house = sales();
    let session = house.session();
    house.done(
        &session,
        "create table pick (p int primary key, shop smallint, day date);
         insert into pick select value, cast(value % 35 as smallint), date '1995-01-01' + cast(value % 300 as int) from number where value < 3000",
    );
    for question in [
        "select s.id from sale s where s.pieces = 7 and s.id < 3000 and s.price = (select min(t.price) from FROM t where t.day = s.day)",
        "select s.id from sale s where s.id < 300 and s.pieces = (select max(t.pieces) from FROM t where t.day = s.day and t.shop = s.shop)",
        "select p from pick where p < 200 and exists (select 1 from (select day, min(shop) as m from FROM t group by day) u where u.day = pick.day and u.m = pick.shop)",
        "select p from pick where p < 200 and not exists (select 1 from (select day, max(shop) as m from FROM t group by day) u where u.day = pick.day and u.m = pick.shop)",
        "select s.id, u.n from sale s join (select t.day, t.shop as h, count(*) as n from FROM t join pick on pick.day = t.day group by t.day, t.shop) u
           on u.day = s.day and u.n = s.pieces and s.id < 800",
    ] {
        let plain = question.replace("FROM", "(select * from sale limit 1000000)");
        let asked = question.replace("FROM", "sale");
        let rows = sorted(&house, &session, &asked);
        assert_eq!(rows, sorted(&house, &session, &plain), "{asked}");
        let told = plan(&house, &session, &asked);
        assert!(told.contains("keys of joins"), "{asked}: {told}");
    }
}
