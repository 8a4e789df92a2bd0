//! Tests of `IN` with NULLs, `lead` and `lag` against naive loops.

use crate::common::House;

/// What SQL knows of a condition.
type Truth = Option<bool>;

/// `and` or `or`.
type Connective = fn(Truth, Truth) -> Truth;

fn and(left: Truth, right: Truth) -> Truth {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(of: Truth) -> Truth {
    of.map(|of| !of)
}

fn or(left: Truth, right: Truth) -> Truth {
    not(and(not(left), not(right)))
}

/// `value = list[0] OR value = list[1] ...`
fn is_in(value: Option<i64>, list: &[Option<i64>]) -> Truth {
    let same = list.iter().map(|it| Some(value? == (*it)?));
    same.fold(Some(false), or)
}

fn texts(list: &[Option<i64>]) -> String {
    let texts = list
        .iter()
        .map(|it| it.map_or("null".to_owned(), |it| it.to_string()));
    texts.collect::<Vec<_>>().join(", ")
}

fn text(of: Truth) -> &'static str {
    match of {
        Some(true) => "t",
        Some(false) => "f",
        None => "NULL",
    }
}

const VALUES: [Option<i64>; 6] = [Some(-5), Some(-4), Some(1), Some(2), Some(3), None];

/// Rows of an answer, each joined by commas.
fn rows(house: &House, sql: &str) -> Vec<String> {
    let answer = house.run(&house.session(), sql);
    let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error}"));
    crate::statements::texts_of_rows(&answer)
        .into_iter()
        .map(|row| row.join(","))
        .collect()
}

#[test]
fn in_lists_with_null_equal_a_naive_evaluation() {
    let house = House::new();
    house.done(
        &house.session(),
        "create table n (id int, a int); insert into n values (0, -5), (1, -4), (2, 1), (3, 2), (4, 3), (5, null);
         create table m (id int, a int not null); insert into m values (0, -5), (1, -4), (2, 1), (3, 2), (4, 3)",
    );
    let lists: [&[Option<i64>]; 6] = [
        &[Some(-4), None, Some(3)],
        &[Some(-5), Some(2), Some(3)],
        &[Some(1), Some(2)],
        &[Some(1)],
        &[None],
        &[Some(3), Some(-5), Some(-4), Some(1), Some(9)],
    ];
    // How a list is written: as such, as a row of comparisons.
    type Says = fn(Option<i64>, &[Option<i64>]) -> Truth;
    let forms: [(&str, Says); 4] = [
        ("a in (@)", is_in),
        ("a not in (@)", |a, list| not(is_in(a, list))),
        ("not (a in (@))", |a, list| not(is_in(a, list))),
        ("(#)", is_in),
    ];
    let written = |form: &str, list: &[Option<i64>]| {
        let each = list.iter().map(|it| format!("a = {}", texts(&[*it])));
        let each = each.collect::<Vec<_>>().join(" or ");
        form.replace('@', &texts(list)).replace('#', &each)
    };
    let ops: [(&str, Connective); 2] = [("and", and), ("or", or)];
    for (of_first, first) in lists.into_iter().enumerate() {
        for (of_second, second) in lists.into_iter().enumerate() {
            let (mut conditions, mut said) = (Vec::new(), Vec::new());
            for (left, says_left) in forms {
                for (right, says_right) in forms {
                    for (op, joined) in ops {
                        let pair =
                            format!("{} {op} {}", written(left, first), written(right, second));
                        let truths =
                            VALUES.map(|a| joined(says_left(a, first), says_right(a, second)));
                        conditions.push(format!("not ({pair})"));
                        said.push(truths.map(not));
                        conditions.push(pair);
                        said.push(truths);
                    }
                }
            }
            let select = format!("select {} from n order by id", conditions.join(", "));
            let found = rows(&house, &select);
            let expected = (0..VALUES.len()).map(|at| {
                let texts = said.iter().map(|truths| text(truths[at]));
                texts.collect::<Vec<_>>().join(",")
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "{select}");
            for table in ["n", "m"] {
                // Some for each pair, others for the next.
                let is_chosen = |at: usize| (at + of_first + of_second).is_multiple_of(8);
                let chosen = conditions
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| is_chosen(*at));
                let chosen = chosen.map(|(at, condition)| {
                    format!("select {at} as c, id from {table} where {condition}")
                });
                let all = chosen.collect::<Vec<_>>().join(" union all ");
                let found = rows(
                    &house,
                    &format!("select c, id from ({all}) u order by c, id"),
                );
                let mut expected = Vec::new();
                for (at, truths) in said.iter().enumerate().filter(|(at, _)| is_chosen(*at)) {
                    for (id, (truth, a)) in truths.iter().zip(VALUES).enumerate() {
                        if *truth == Some(true) && (table == "n" || a.is_some()) {
                            expected.push(format!("{at},{id}"));
                        }
                    }
                }
                assert_eq!(found, expected, "{all}");
            }
        }
    }
}

/// As above, where a query below gives the conditions names, and one above puts them together.
#[test]
fn combined_conditions_of_a_subquery_equal_a_naive_evaluation() {
    let house = House::new();
    house.done(
        &house.session(),
        "create table n (id int, a int); insert into n values (0, -5), (1, -4), (2, 1), (3, 2), (4, 3), (5, null)",
    );
    type Says = fn(Option<i64>) -> Truth;
    let conditions: [(&str, Says); 8] = [
        ("a in (1, 2)", |a| is_in(a, &[Some(1), Some(2)])),
        ("a not in (1, 2)", |a| not(is_in(a, &[Some(1), Some(2)]))),
        ("a in (3, -4)", |a| is_in(a, &[Some(3), Some(-4)])),
        ("a not in (3, -4)", |a| not(is_in(a, &[Some(3), Some(-4)]))),
        ("a = 1", |a| is_in(a, &[Some(1)])),
        ("a = 2", |a| is_in(a, &[Some(2)])),
        ("a <> 3", |a| not(is_in(a, &[Some(3)]))),
        ("not (a in (2, 3) and true)", |a| {
            not(is_in(a, &[Some(2), Some(3)]))
        }),
    ];
    let ops: [(&str, Connective); 2] = [("and", and), ("or", or)];
    for (left, says_left) in conditions {
        for (right, says_right) in conditions {
            for (op, joined) in ops {
                let named = format!("(select id, {left} as p, {right} as q from n) s");
                let truths = VALUES.map(|a| joined(says_left(a), says_right(a)));
                let select = format!("select p {op} q from {named} order by id");
                assert_eq!(rows(&house, &select), truths.map(text), "{select}");
                for (condition, wanted) in [("", Some(true)), ("not", Some(false))] {
                    let select =
                        format!("select id from {named} where {condition} (p {op} q) order by id");
                    let expected = truths.iter().enumerate();
                    let expected = expected.filter(|(_, truth)| **truth == wanted);
                    let expected: Vec<_> = expected.map(|(id, _)| id.to_string()).collect();
                    assert_eq!(rows(&house, &select), expected, "{select}");
                }
            }
        }
    }
}

/// What `lead` of so many, or `lag` of less than none, gives for each row.
fn shifted(
    values: &[Option<i64>],
    by: i64,
    ignores_nulls: bool,
    default: Option<i64>,
) -> Vec<Option<i64>> {
    let step = if by < 0 { -1 } else { 1 };
    let at = |row: i64| {
        usize::try_from(row)
            .ok()
            .and_then(|row| values.get(row).copied())
    };
    let one = |row: usize| {
        let (mut row, mut left) = (row as i64, by.abs());
        while left > 0 {
            row += step;
            match at(row) {
                None => return default,
                Some(None) if ignores_nulls => (),
                Some(_) => left -= 1,
            }
        }
        at(row).flatten()
    };
    (0..values.len()).map(one).collect()
}

#[test]
fn lead_and_lag_equal_a_naive_evaluation() {
    let house = House::new();
    let values = [
        vec![None, Some(10), Some(20), Some(30), None, Some(50)],
        vec![
            Some(1),
            None,
            None,
            Some(4),
            None,
            None,
            Some(7),
            Some(8),
            None,
        ],
        vec![None, None],
        vec![Some(3), Some(2), Some(1)],
    ];
    let rows_of = values.iter().enumerate().flat_map(|(p, values)| {
        let row = move |(id, b): (usize, &Option<i64>)| format!("({p}, {id}, {})", texts(&[*b]));
        values.iter().enumerate().map(row)
    });
    let rows_of = rows_of.collect::<Vec<_>>().join(", ");
    house.done(
        &house.session(),
        &format!("create table s (p int, id int, b int); insert into s values {rows_of}"),
    );
    for by in -4..=4_i64 {
        for (name, sign) in [("lead", 1), ("lag", -1)] {
            for ignores in [false, true] {
                for default in [None, Some(-1)] {
                    for is_down in [false, true] {
                        let nulls = if ignores { " ignore nulls" } else { "" };
                        let default_text = default.map_or(String::new(), |it| format!(", {it}"));
                        let down = if is_down { " desc" } else { "" };
                        let call = format!(
                            "{name}(b, {by}{default_text}){nulls} over (partition by p order by id{down})"
                        );
                        let mut expected = Vec::new();
                        for values in &values {
                            let direction = if is_down { -1 } else { 1 };
                            expected.extend(shifted(
                                values,
                                by * sign * direction,
                                ignores,
                                default,
                            ));
                        }
                        let expected = expected
                            .iter()
                            .map(|it| it.map_or("NULL".to_owned(), |it| it.to_string()));
                        let expected: Vec<_> = expected.collect();
                        let alone = format!("select {call} as x from s order by p, id");
                        assert_eq!(rows(&house, &alone), expected, "{alone}");
                        let beside = format!(
                            "select x from (select {call} as x, sum(b) over (partition by p order by id) as y, p, id from s) w order by p, id"
                        );
                        assert_eq!(rows(&house, &beside), expected, "{beside}");
                        let first =
                            format!("select {call} as x from s where p = 0 order by id limit 3");
                        assert_eq!(rows(&house, &first), expected[..3], "{first}");
                    }
                }
            }
        }
    }
}
