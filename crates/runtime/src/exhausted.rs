//! Messages for people out of the errors of memory pools: which step of a query needs how much
//! more.
//!
//! DataFusion's pools answer with the names of its operators and a list of all other consumers.
//! People who write queries know sorting and grouping, so messages name these, and what is missing.

use orrery_storage::ByteCount;

/// DataFusion's and our own parts, by how their names begin, and what they do for a query.
const PARTS: &[(&str, &str)] = &[
    ("ExternalSorter", "sorting"),
    ("SortPreservingMerge", "sorting"),
    ("TopK", "finding the first rows in order"),
    ("PartitionedTopK", "finding the first rows in order"),
    ("GroupExec", "grouping"),
    ("ComplementExec", "grouping what does not exist"),
    ("DistinctExec", "DISTINCT"),
    ("LimitOfEachExec", "the LIMIT of a subquery"),
    (
        "SharedExec",
        "keeping rows that several parts of the query read",
    ),
    ("BufferExec", "keeping rows that are on their way"),
    ("HashJoinInput", "a join"),
    ("NestedLoopJoin", "a join"),
    ("PiecewiseMergeJoin", "a join"),
    ("SymmetricHashJoin", "a join"),
    ("CrossJoin", "a join"),
    ("SMJStream", "a join"),
    ("join of solutions", "a join"),
    ("property path", "a property path"),
    ("SERVICE", "the answers of SERVICE"),
];
const GROUPING: &str = "AggregateStream";

/// How refusals end that are those of an account, and not of the memory of all.
pub(crate) const OF_ACCOUNT: &str = " that your requests may hold at a time";

/// Whether it is an account whose share is used up.
pub fn is_of_account(message: &str) -> bool {
    let first = message.lines().next().unwrap_or_default();
    first.ends_with(OF_ACCOUNT)
}

/// How the pools' messages begin, before the amount.
const REFUSED: &str = "Failed to allocate additional ";

/// What comes in them after what was left.
const LEFT: &str = " remain available";

/// What stands before the cause, behind the list.
const CAUSE: &str = "\nError: ";

/// What was asked for by whom, of a message of a memory pool; any other message is kept up to its
/// first line's end.
pub fn words(message: &str) -> String {
    let Some((_, refused)) = message.split_once(REFUSED) else {
        // A list of who else holds memory stands before what a pool of ours has said.
        let (_, cause) = message.split_once(CAUSE).unwrap_or(("", message));
        return cause.lines().next().unwrap_or_default().to_owned();
    };
    let (amount, rest) = refused.split_once(" for ").unwrap_or((refused, ""));
    let name = rest.split(" with ").next().unwrap_or_default();
    let missing = match missing_bytes(amount, rest) {
        Some(missing) => ByteCount(missing).to_string(),
        None => amount_words(amount),
    };
    format!("{missing} more needed for {}", part(name))
}

/// How much less was left than was asked for, where something was.
fn missing_bytes(amount: &str, rest: &str) -> Option<u64> {
    let left = rest.split(LEFT).next()?.rsplit(" - ").next()?;
    let left = bytes_of(left).filter(|left| *left > 0)?;
    bytes_of(amount)?.checked_sub(left)
}

/// An amount as DataFusion writes it.
fn bytes_of(amount: &str) -> Option<u64> {
    let (number, unit) = amount.split_once(' ')?;
    let shift = ["B", "KB", "MB", "GB", "TB"]
        .iter()
        .position(|it| *it == unit)?;
    let number: f64 = number.parse().ok()?;
    Some((number * (1u64 << (10 * shift)) as f64) as u64)
}

/// What a part does for a query. Names of ours that are words already stay.
pub(crate) fn part(name: &str) -> &str {
    let known = PARTS.iter().find(|(begin, _)| name.starts_with(begin));
    match known {
        Some((_, words)) => words,
        None if name.contains(GROUPING) => "grouping",
        None if name.is_empty() || name.contains('[') => "a step of the query",
        None => name,
    }
}

/// DataFusion counts in powers of 1,024 and writes `MB`.
fn amount_words(amount: &str) -> String {
    let (number, unit) = amount.split_once(' ').unwrap_or((amount, "B"));
    let number = number.strip_suffix(".0").unwrap_or(number);
    let unit = match unit {
        "KB" => "KiB",
        "MB" => "MiB",
        "GB" => "GiB",
        "TB" => "TiB",
        other => other,
    };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_what_their_query_was_doing() {
        let of = |name: &str, amount: &str| {
            words(&format!(
                "Additional allocation failed for {name} with top memory consumers (across reservations) as:\n  \
                 x#1(can spill: true) consumed 9.0 MB.\nError: Failed to allocate additional {amount} for {name} with 1.5 MB already \
                 allocated for this reservation - 0.0 B remain available for the total memory pool: fair(pool_size: 2.0 MB)"
            ))
        };
        let cases = [
            (
                "ExternalSorter[0]",
                "3.2 MB",
                "3.2 MiB more needed for sorting",
            ),
            (
                "FinalHashAggregateStream[3]",
                "64.0 KB",
                "64 KiB more needed for grouping",
            ),
            ("HashJoinInput", "1000.0 B", "1000 B more needed for a join"),
            (
                "long literals of the answer",
                "2.0 MB",
                "2 MiB more needed for long literals of the answer",
            ),
            (
                "Newfangled[1]",
                "1.0 B",
                "1 B more needed for a step of the query",
            ),
        ];
        for (name, amount, expected) in cases {
            assert_eq!(of(name, amount), expected);
        }
        let some_left = "Failed to allocate additional 22.0 MB for TopK[0] with 1.5 MB already allocated for this reservation - \
                         4.0 MB remain available for the total memory pool: fair(pool_size: 9.0 MB)";
        assert_eq!(
            words(some_left),
            "18 MiB more needed for finding the first rows in order"
        );
        assert_eq!(words("a tree of 9 nodes\nmore"), "a tree of 9 nodes");
    }
}
