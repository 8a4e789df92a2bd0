//! Random SQL expressions of a given kind.
//!
//! What would differ by dialect is not made: numbers stay small, so that nothing runs over; a
//! divisor is never zero; averages are of integers and doubles; doubles are sums of fourths, exact
//! in any order.

use super::super::random::Random;
use super::dual::{Kind, Sql, quoted};
use super::tables::{Spread, literal};

/// A column that expressions may name.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub(super) name: Sql,
    pub(super) kind: Kind,
    pub(super) spread: Spread,
}

const PATTERNS: &[&str] = &[
    "a%",
    "%e%",
    "_",
    "",
    "%",
    "a rather%",
    "%1%",
    "A%",
    "%\\_%",
    "text 1_",
];
const COMPARISONS: &[&str] = &["=", "=", "=", "<>", "<", "<=", ">", ">="];

/// A column of a kind, if there is one.
pub(super) fn column<'s>(
    random: &mut Random,
    scope: &'s [Visible],
    kind: Kind,
) -> Option<&'s Visible> {
    let of_kind: Vec<&Visible> = scope.iter().filter(|it| it.kind == kind).collect();
    (!of_kind.is_empty()).then(|| of_kind[random.below(of_kind.len())])
}

/// A value of a kind.
pub(super) fn value(random: &mut Random, scope: &[Visible], kind: Kind, depth: usize) -> Sql {
    let column = column(random, scope, kind);
    let is_leaf = depth == 0 || random.chance(55);
    if is_leaf {
        return match column {
            Some(column) if random.chance(85) => column.name.clone(),
            _ => literal(random, kind, Spread::Few),
        };
    }
    let less = depth - 1;
    if random.chance(15) {
        let condition = condition(random, scope, less);
        let (yes, no) = (
            value(random, scope, kind, less),
            value(random, scope, kind, less),
        );
        return match random.below(4) {
            0 => Sql::of("case when {} then {} end", &[&condition, &yes]),
            3 => {
                let of = random.pick(&[Kind::Integer, Kind::Text, Kind::Date]);
                let (operand, one) = (leaf(random, scope, of), leaf(random, scope, of));
                let other = literal(random, of, Spread::Few);
                Sql::of(
                    "case {} when {} then {} when {} then {} end",
                    &[&operand, &one, &yes, &other, &no],
                )
            }
            1 => Sql::of("case when {} then {} else {} end", &[&condition, &yes, &no]),
            _ => Sql::of("coalesce({}, {})", &[&yes, &no]),
        };
    }
    match kind {
        Kind::Integer => integer(random, scope, less),
        Kind::Decimal => {
            let of = value(random, scope, kind, less);
            let other = leaf(random, scope, kind);
            match random.below(9) {
                4 => whole("floor", &of),
                5 => whole("ceil", &of),
                6 => Sql::of("greatest({}, {})", &[&of, &other]),
                7 => Sql::of("least({}, {})", &[&of, &other]),
                8 => {
                    let of = leaf(random, scope, Kind::Integer);
                    Sql::of("cast({} as decimal(18,2))", &[&of])
                }
                0 => Sql::of("({} + {})", &[&of, &other]),
                1 => Sql::of("({} - {})", &[&of, &other]),
                2 => Sql::of("(- {})", &[&of]),
                _ => Sql::of("abs({})", &[&of]),
            }
        }
        Kind::Double => {
            let of = value(random, scope, kind, less);
            let other = leaf(random, scope, kind);
            match random.below(9) {
                4 => Sql::of("floor({})", &[&of]),
                5 => Sql::of("sqrt(abs({}))", &[&of]),
                6 => Sql::of("greatest({}, {})", &[&of, &other]),
                7 => {
                    let kind = random.pick(&[Kind::Integer, Kind::Decimal]);
                    let of = leaf(random, scope, kind);
                    Sql::of("cast({} as double precision)", &[&of])
                }
                8 => Sql::of("({} / nullif({}, 0))", &[&of, &other]),
                0 => Sql::of("({} + {})", &[&of, &other]),
                1 => Sql::of("({} - {})", &[&of, &other]),
                2 => Sql::of("({} * '0.5'::double)", &[&of]),
                3 => Sql::of("('0'::double - {})", &[&of]),
                _ => Sql::of("abs({})", &[&of]),
            }
        }
        Kind::Boolean => {
            let of = condition(random, scope, less);
            Sql::of("({})", &[&of])
        }
        Kind::Time => time(random, scope, less),
        Kind::Date => date(random, scope, less),
        Kind::Text => text(random, scope, less),
        Kind::Bytes | Kind::Bound => {
            let (of, other) = (leaf(random, scope, kind), leaf(random, scope, kind));
            match random.below(3) {
                0 if kind == Kind::Bound => Sql::of("greatest({}, {})", &[&of, &other]),
                1 if kind == Kind::Bound => Sql::of("least({}, {})", &[&of, &other]),
                // DuckDB takes `nullif('a', x) IN (...)` for one of `nullif(x, 'a')`.
                _ if column.is_none_or(|column| column.name != of) => of,
                _ => Sql::of("nullif({}, {})", &[&of, &other]),
            }
        }
    }
}

fn leaf(random: &mut Random, scope: &[Visible], kind: Kind) -> Sql {
    value(random, scope, kind, 0)
}

/// An operand of a computation, which DuckDB makes in the width of its columns.
fn wide(of: &Sql) -> Sql {
    Sql {
        ours: of.ours.clone(),
        theirs: format!("({})::bigint", of.theirs),
    }
}

fn date(random: &mut Random, scope: &[Visible], depth: usize) -> Sql {
    let of = value(random, scope, Kind::Date, depth);
    let other = leaf(random, scope, Kind::Date);
    match random.below(6) {
        0 => Sql::of("nullif({}, {})", &[&of, &other]),
        1 => Sql::of("({} + 40)", &[&of]),
        2 => Sql::of("({} - 3)", &[&of]),
        3 => Sql::of("greatest({}, {})", &[&of, &other]),
        4 => Sql::of("least({}, {})", &[&of, &other]),
        _ => Sql::of(
            "cast({} as date)",
            &[&value(random, scope, Kind::Time, depth)],
        ),
    }
}

fn time(random: &mut Random, scope: &[Visible], depth: usize) -> Sql {
    let of = value(random, scope, Kind::Time, depth);
    let interval = random.pick(&["1 day", "1 month", "3 hours", "2 years", "90 minutes"]);
    let interval = Sql::same(interval);
    match random.below(5) {
        0 => Sql::of("({} + interval '{}')", &[&of, &interval]),
        1 => Sql::of("({} - interval '{}')", &[&of, &interval]),
        2 => {
            let of = leaf(random, scope, Kind::Date);
            Sql::of("cast({} as timestamp)", &[&of])
        }
        _ => {
            let unit = random.pick(&[
                "decade", "year", "quarter", "month", "week", "day", "hour", "minute", "second",
            ]);
            Sql::of("date_trunc('{}', {})", &[&Sql::same(unit), &of])
        }
    }
}

fn integer(random: &mut Random, scope: &[Visible], depth: usize) -> Sql {
    let of = wide(&value(random, scope, Kind::Integer, depth));
    let other = wide(&leaf(random, scope, Kind::Integer));
    match random.below(13) {
        8 => Sql::of("greatest({}, {})", &[&of, &other]),
        9 => Sql::of("least({}, {})", &[&of, &other]),
        10 => Sql::of(
            "position('{}' in {})",
            &[
                &Sql::same(random.pick(&["a", "e", "ext", ""])),
                &value(random, scope, Kind::Text, depth),
            ],
        ),
        11 => Sql::of(
            "cast(cast({} as text) as bigint)",
            &[&leaf(random, scope, Kind::Integer)],
        ),
        0 => Sql::of("({} + {})", &[&of, &other]),
        1 => Sql::of("({} - {})", &[&of, &other]),
        2 => Sql::of("({} * 3)", &[&of]),
        3 => Sql::of("(- {})", &[&of]),
        4 => Sql::of("abs({})", &[&of]),
        5 => {
            let mut divided = Sql::of("({} ", &[&of]);
            divided.ours.push('/');
            divided.theirs.push_str("//");
            divided.push(&Sql::of(" nullif({}, 0))", &[&other]));
            divided
        }
        6 => Sql::of("({} % nullif({}, 0))", &[&of, &other]),
        7 => Sql::of(
            "char_length({})",
            &[&value(random, scope, Kind::Text, depth)],
        ),
        _ => {
            let part = random.pick(&["year", "month", "day", "dow", "doy", "quarter", "week"]);
            let part = Sql::same(part);
            let kind = random.pick(&[Kind::Date, Kind::Time]);
            let of = value(random, scope, kind, depth);
            Sql::of("cast(extract({} from {}) as bigint)", &[&part, &of])
        }
    }
}

fn text(random: &mut Random, scope: &[Visible], depth: usize) -> Sql {
    let of = value(random, scope, Kind::Text, depth);
    let other = leaf(random, scope, Kind::Text);
    match random.below(17) {
        6 => Sql::of("left({}, 2)", &[&of]),
        7 => Sql::of("right({}, 3)", &[&of]),
        8 => Sql::of("lpad({}, 5, '*')", &[&of]),
        9 => Sql::of("reverse({})", &[&of]),
        10 => Sql::of("concat({}, '-', {})", &[&of, &other]),
        11 => Sql::of("split_part({}, 'e', 2)", &[&of]),
        12 => Sql::of("concat_ws('/', {}, {})", &[&of, &other]),
        13 => Sql::of("greatest({}, {})", &[&of, &other]),
        14 => Sql::of("substring({} from 3)", &[&of]),
        15 => {
            let kind = random.pick(&[Kind::Date, Kind::Boolean, Kind::Bound]);
            Sql::of("cast({} as text)", &[&leaf(random, scope, kind)])
        }
        0 => Sql::of("({} || {})", &[&of, &other]),
        1 => Sql::of("upper({})", &[&of]),
        2 => Sql::of("lower({})", &[&of]),
        3 => Sql::of("substring({} from 2 for 3)", &[&of]),
        4 => Sql::of("trim({})", &[&of]),
        5 => Sql::of("replace({}, 'a', 'xy')", &[&of]),
        _ => Sql::of("cast({} as text)", &[&leaf(random, scope, Kind::Integer)]),
    }
}

/// Something that is true, false or NULL.
pub(super) fn condition(random: &mut Random, scope: &[Visible], depth: usize) -> Sql {
    if depth > 0 && random.chance(40) {
        let (left, right) = (
            condition(random, scope, depth - 1),
            condition(random, scope, depth - 1),
        );
        return match random.below(5) {
            0 | 1 => Sql::of("({} and {})", &[&left, &right]),
            2 | 3 => Sql::of("({} or {})", &[&left, &right]),
            _ => Sql::of("(not ({}))", &[&left]),
        };
    }
    if scope.is_empty() {
        return Sql::same("1 = 1");
    }
    // Most conditions are of a column with literals: those are what zones and keys answer.
    let of = &scope[random.below(scope.len())];
    let kind = of.kind;
    let (left, right) = match random.chance(70) {
        true => (of.name.clone(), literal(random, kind, of.spread)),
        false => (
            value(random, scope, kind, depth),
            value(random, scope, kind, depth),
        ),
    };
    let negated = Sql::same(if random.chance(30) { " not" } else { "" });
    match random.below(12) {
        0 => Sql::of("{} is{} null", &[&left, &negated]),
        1 => {
            let values = (0..1 + random.below(5)).map(|_| match random.chance(5) {
                true => Sql::same("null"),
                false => literal(random, kind, of.spread),
            });
            let values = Sql::join(&values.collect::<Vec<_>>(), ", ");
            Sql::of("{}{} in ({})", &[&left, &negated, &values])
        }
        2 => {
            let other = literal(random, kind, of.spread);
            Sql::of("{}{} between {} and {}", &[&left, &negated, &right, &other])
        }
        3 => {
            let other = match random.chance(40) {
                true => Sql::same("null"),
                false => right,
            };
            Sql::of("{} is{} distinct from {}", &[&left, &negated, &other])
        }
        4 | 5 if kind == Kind::Text => {
            let pattern = Sql::same(quoted(random.pick(PATTERNS)));
            let word = Sql::same(random.pick(&["like", "like", "ilike"]));
            let mut like = Sql::of("{}{} {} {}", &[&left, &negated, &word, &pattern]);
            // PostgreSQL's escape, which DuckDB has to be told.
            like.theirs.push_str(" escape '\\'");
            like
        }
        _ if kind == Kind::Boolean => match random.below(3) {
            0 => left,
            1 => Sql::of("{} is{} true", &[&left, &negated]),
            _ => Sql::of("{} = {}", &[&left, &right]),
        },
        _ if random.chance(12) => mixed(random, scope),
        _ => {
            let comparison = Sql::same(random.pick(COMPARISONS));
            Sql::of("{} {} {}", &[&left, &comparison, &right])
        }
    }
}

/// Numbers of different types, and a date with a time.
fn mixed(random: &mut Random, scope: &[Visible]) -> Sql {
    let numbers = [Kind::Integer, Kind::Decimal, Kind::Double];
    let (left, right) = match random.chance(30) {
        true => (Kind::Date, Kind::Time),
        false => (random.pick(&numbers), random.pick(&numbers)),
    };
    let comparison = Sql::same(random.pick(COMPARISONS));
    let (left, right) = (leaf(random, scope, left), leaf(random, scope, right));
    Sql::of("{} {} {}", &[&left, &comparison, &right])
}

/// The decimal below or above another. DuckDB's has no digits behind the point, and takes them from
/// what it is compared with.
fn whole(function: &str, of: &Sql) -> Sql {
    let mut whole = Sql::of(&format!("{function}({{}})"), &[of]);
    whole.theirs = format!("cast({} as decimal(18,2))", whole.theirs);
    whole
}
