//! Queries with known answers beside writers: invariants of snapshots.

use serde_json::Value;

use super::shape::{ACCOUNTS, BALANCE, FILLER_QUADS, LOAD_QUADS, TURNOVER_GRAPHS, TURNOVER_QUADS};

/// A question and what its answer has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Transfers keep the sum of all balances.
    Sum,
    /// Each account has one balance.
    Accounts,
    /// Each graph of the turnover is whole, and there are always as many.
    Turnover,
    /// Bulk loads are visible as a whole or not at all.
    Loads,
    /// Acknowledged transfers are visible, each with all its parts.
    Transfers,
    /// Nobody touches the rest.
    Filler,
}

impl Check {
    pub(super) const ALL: [Self; 6] = [
        Self::Sum,
        Self::Accounts,
        Self::Turnover,
        Self::Loads,
        Self::Transfers,
        Self::Filler,
    ];

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Sum => "SELECT (SUM(?b) AS ?n) (COUNT(?b) AS ?m) { ?a <urn:balance> ?b }",
            Self::Accounts => {
                "SELECT (MAX(?balances) AS ?n) (COUNT(?a) AS ?m) \
                 { SELECT ?a (COUNT(?b) AS ?balances) { ?a <urn:balance> ?b } GROUP BY ?a }"
            }
            Self::Turnover => {
                "SELECT (MIN(?items) AS ?n) (COUNT(?g) AS ?m) (MAX(?items) AS ?o) \
                 { SELECT ?g (COUNT(?text) AS ?items) \
                 { GRAPH ?g { ?item <urn:turned> ?text FILTER(STRLEN(?text) != 0) } } GROUP BY ?g }"
            }
            Self::Loads => {
                "SELECT (COUNT(?text) AS ?n) (COUNT(DISTINCT ?text) AS ?m) \
                 { GRAPH ?g { ?item <urn:loads> ?text } }"
            }
            Self::Transfers => {
                "SELECT (COUNT(DISTINCT ?t) AS ?n) (COUNT(*) AS ?m) \
                 { ?t <urn:from> ?from OPTIONAL { ?t <urn:to> ?to . ?t <urn:note> ?note } \
                 FILTER(BOUND(?note) && CONTAINS(?note, \"transfer\")) }"
            }
            Self::Filler => {
                "SELECT (COUNT(?text) AS ?n) (COUNT(DISTINCT ?s) AS ?m) { ?s ?p ?text \
                 FILTER(STRSTARTS(STR(?p), \"urn:about:\")) }"
            }
        }
    }

    /// Looks at an answer in JSON; so many transfers were acknowledged before the question. Says
    /// what is wrong.
    pub(super) fn look_at(self, body: &[u8], acknowledged: u64) -> Result<(), String> {
        let wrong = || String::from_utf8_lossy(body).into_owned();
        let answer: Value = serde_json::from_slice(body).map_err(|_| wrong())?;
        let number = |name: &str| -> Option<u64> {
            let value = &answer["results"]["bindings"][0][name]["value"];
            value.as_str()?.parse().ok()
        };
        let (Some(n), Some(m)) = (number("n"), number("m")) else {
            return Err(wrong());
        };
        let is_right = match self {
            Self::Sum => n == u64::from(ACCOUNTS) * BALANCE && m == u64::from(ACCOUNTS),
            Self::Accounts => n == 1 && m == u64::from(ACCOUNTS),
            Self::Turnover => {
                n == TURNOVER_QUADS && m == TURNOVER_GRAPHS && number("o") == Some(TURNOVER_QUADS)
            }
            Self::Loads => n.is_multiple_of(LOAD_QUADS) && m == n,
            Self::Transfers => n >= acknowledged && m == n,
            Self::Filler => {
                n == u64::from(FILLER_QUADS) && m == u64::from(FILLER_QUADS.div_ceil(10))
            }
        };
        match is_right {
            true => Ok(()),
            false => Err(format!(
                "{} (transfers acknowledged before: {acknowledged})",
                wrong()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(n: u64, m: u64) -> Vec<u8> {
        format!(r#"{{"results":{{"bindings":[{{"n":{{"value":"{n}"}},"m":{{"value":"{m}"}}}}]}}}}"#)
            .into_bytes()
    }

    #[test]
    fn wrong_sums_torn_loads_and_lost_transfers_are_found() {
        assert!(Check::Sum.look_at(&answer(100_000, 1_000), 0).is_ok());
        assert!(Check::Sum.look_at(&answer(100_001, 1_000), 0).is_err());
        assert!(Check::Loads.look_at(&answer(40_000, 40_000), 0).is_ok());
        assert!(Check::Loads.look_at(&answer(30_000, 30_000), 0).is_err());
        assert!(Check::Transfers.look_at(&answer(8, 8), 7).is_ok());
        assert!(Check::Transfers.look_at(&answer(6, 6), 7).is_err());
        assert!(Check::Transfers.look_at(&answer(8, 7), 7).is_err());
        assert!(Check::Filler.look_at(b"no answer", 0).is_err());
    }
}
