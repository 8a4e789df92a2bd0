//! Metrics of queries and loads that cluster nodes divide among them, and of forwarded
//! transactions. All are zero if the server is not a node.

use orrery_distributed::Figures;
use orrery_sql::Guests;

use super::text::{Page, Type};

type Family = (&'static str, Type, &'static str, fn(&Figures) -> u64);

const FAMILIES: [Family; 6] = [
    (
        "orrery_divided_queries_total",
        Type::Counter,
        "Queries that were asked here and run by several nodes.",
        |figures| figures.divided,
    ),
    (
        "orrery_divided_begun_anew_total",
        Type::Counter,
        "How often such a query began anew because a node was lost.",
        |figures| figures.begun_anew,
    ),
    (
        "orrery_divided_alone_total",
        Type::Counter,
        "Queries that were to be divided and were run here alone in the end.",
        |figures| figures.alone,
    ),
    (
        "orrery_divided_worked_total",
        Type::Counter,
        "Queries of which this node ran parts, also of those that were asked here.",
        |figures| figures.worked_for,
    ),
    (
        "orrery_divided_received_bytes_total",
        Type::Counter,
        "Bytes of rows that came from other nodes.",
        |figures| figures.bytes,
    ),
    (
        "orrery_divided_open",
        Type::Gauge,
        "Queries of which parts are open here now.",
        |figures| figures.open,
    ),
];

/// Writes the metrics of transactions for clients of other nodes.
pub fn write_guests(guests: Option<&Guests>, page: &mut Page) {
    page.family(
        "orrery_forwarded_transactions_total",
        Type::Counter,
        "Transactions that were begun here for clients of PostgreSQL and Flight SQL at other nodes.",
    )
    .value(guests.map_or(0, Guests::begun));
    page.family(
        "orrery_forwarded_transactions_open",
        Type::Gauge,
        "Those of them that are open now.",
    )
    .value(guests.map_or(0, Guests::open));
}

/// Writes the current figures.
pub fn write_divided(figures: &Figures, load_shares: u64, page: &mut Page) {
    page.family(
        "orrery_divided_load_shares_total",
        Type::Counter,
        "Shares of other nodes' loads that were done here.",
    )
    .value(load_shares);
    for (name, of_type, help, figure) in FAMILIES {
        page.family(name, of_type, help).value(figure(figures));
    }
}
