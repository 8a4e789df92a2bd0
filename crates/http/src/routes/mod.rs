//! The public routes: a row for each, and the handlers, one file or room for each path.
//!
//! A new route is a handler in a file of its own, and a row here; `route_table` says what the columns
//! mean.

mod changes;
mod cluster;
mod console;
pub(crate) mod description;
mod graphs;
mod health;
mod maintenance;
pub(crate) mod metrics_page;
mod prefixes;
mod sparql;
mod sql;
mod texts;
pub(crate) mod updates;

use std::sync::LazyLock;

use axum::http::Method;

use crate::route::Forwarding::{ByText, Here, Writer};
use crate::route::Metering::{Counted, Free};
use crate::route::Right;
use crate::route_table::{Act, Route, RouteTable};

/// What the public listener answers.
pub(crate) static PUBLIC: LazyLock<RouteTable> = LazyLock::new(|| {
    let compacts = Right::administrator("write the database anew")
        .for_change()
        .of_all_graphs();
    let changes_texts = Right::administrator("change the index of texts")
        .for_change()
        .of_all_graphs();
    let reads_texts = Right::administrator("read which texts are in the index").of_all_graphs();
    let changes_prefixes = Right::administrator("change prefixes")
        .for_change()
        .of_all_graphs();
    let sees_cluster = Right::administrator("see how the cluster is");
    let changes_cluster = Right::administrator("change the cluster").for_change();
    let store = |method| Act::with_body(method, Right::CHANGER, Counted, Writer, graphs::change);
    // The console, and whether the server is up.
    let mut routes = vec![
        Route::new(&["/"], [Act::get(Right::READER, Free, console::page)]),
        Route::new(
            &["/console.js"],
            [Act::get(Right::READER, Free, console::script)],
        ),
        Route::new(
            &["/console.css"],
            [Act::get(Right::READER, Free, console::style)],
        ),
        Route::new(
            &["/health"],
            [Act::get(Right::NOBODY, Free, health::health)],
        ),
        Route::new(
            &["/health/ready"],
            [Act::get(Right::NOBODY, Free, health::ready)],
        ),
        Route::new(
            &["/metrics"],
            [Act::get(Right::SCRAPER, Free, metrics_page::metrics)],
        ),
    ];
    // Data. An update or a statement that changes something asks for more once it is read.
    routes.extend([
        Route::new(
            &["/sparql", "/sparql/"],
            [
                Act::with_body(Method::GET, Right::READER, Counted, Here, sparql::ask),
                Act::with_body(Method::POST, Right::READER, Counted, ByText, sparql::ask),
            ],
        ),
        Route::new(
            &["/explain"],
            [
                Act::with_body(Method::GET, Right::READER, Counted, Here, sparql::explain),
                Act::with_body(Method::POST, Right::READER, Counted, Here, sparql::explain),
            ],
        ),
        Route::new(
            &["/sql"],
            [Act::with_body(
                Method::POST,
                Right::READER,
                Counted,
                ByText,
                sql::answer,
            )],
        ),
        Route::new(
            &["/graphs", "/graphs/", "/graphs/{*graph}"],
            [
                Act::get(Right::READER, Counted, graphs::read),
                store(Method::PUT),
                store(Method::POST),
                store(Method::DELETE),
                store(Method::PATCH),
            ],
        ),
        Route::new(
            &["/changes"],
            [Act::get(Right::READER, Counted, changes::answer)],
        ),
    ]);
    // The database as a whole.
    routes.extend([
        Route::new(
            &["/prefixes"],
            [
                Act::get(Right::READER, Free, prefixes::list),
                Act::of(
                    Method::POST,
                    changes_prefixes,
                    Free,
                    Writer,
                    prefixes::change,
                ),
            ],
        ),
        Route::new(
            &["/text"],
            [
                Act::get(reads_texts, Free, texts::list),
                Act::of(Method::POST, changes_texts, Free, Writer, texts::make),
                Act::of(Method::DELETE, changes_texts, Free, Writer, texts::give_up),
            ],
        ),
        Route::new(
            &["/checkpoint"],
            [Act::of(
                Method::POST,
                compacts,
                Free,
                Writer,
                maintenance::checkpoint,
            )],
        ),
        Route::new(
            &["/compact"],
            [Act::of(
                Method::POST,
                compacts,
                Free,
                Writer,
                maintenance::compaction,
            )],
        ),
        // Each node reaches the others by itself.
        Route::new(
            &["/cluster"],
            [
                Act::get(sees_cluster, Free, cluster::status),
                Act::of(Method::POST, changes_cluster, Free, Here, cluster::change),
                Act::of(Method::DELETE, changes_cluster, Free, Here, cluster::change),
            ],
        ),
    ]);
    RouteTable::new(routes)
});
