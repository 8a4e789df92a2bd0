//! The check of the tables after the refreshes, by each access path.

use super::BenchError;
use super::database::Client;

/// The rows that the changed tables must have.
pub(super) struct Held {
    pub(super) orders: u64,
    pub(super) lines: u64,
}

impl Held {
    /// Those of now.
    pub(super) fn now(client: &Client<'_>) -> Result<Self, BenchError> {
        Ok(Self {
            orders: client.number("select count(*) from orders")?,
            lines: client.number("select count(*) from lineitem")?,
        })
    }

    /// Where they have others. Each refresh set deletes as many orders as it inserts.
    pub(super) fn mistakes(&self, client: &Client<'_>) -> Result<Vec<String>, BenchError> {
        let mut mistakes = Vec::new();
        for (query, expected) in [
            ("select count(*) from orders", self.orders),
            ("select count(*) from lineitem", self.lines),
            (
                "select count(*) from lineitem, orders where l_orderkey = o_orderkey and l_linenumber >= 1",
                self.lines,
            ),
            (
                "select count(*) from orders where not exists (select * from lineitem where l_orderkey = o_orderkey)",
                0,
            ),
        ] {
            let found = client.number(query)?;
            if found != expected {
                mistakes.push(format!(
                    "after the refreshes: {query}: {found}, not {expected}"
                ));
            }
        }
        Ok(mistakes)
    }
}
