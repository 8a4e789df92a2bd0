//! Who is told of statements that run at a listener: whoever lists them, ends them from outside, and writes down how they ended.

use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;

/// A statement that begins.
#[derive(Debug, Clone, Copy)]
pub struct Watchable<'a> {
    /// Its text.
    pub text: &'a str,
    /// Who asks, where users are known.
    pub user: Option<&'a str>,
    /// From where.
    pub client: IpAddr,
    /// By which program, as that says.
    pub agent: Option<&'a str>,
}

/// Whoever is told.
pub trait Watch: Send + Sync + 'static {
    /// A statement begins.
    fn begin(&self, statement: &Watchable<'_>) -> Arc<dyn Watched>;
}

/// A statement that runs: until it is said how it ended, or this is dropped, which means that its client has gone.
pub trait Watched: Send + Sync + 'static {
    /// Completes when somebody ends it from outside; never otherwise.
    fn killed(&self) -> BoxFuture<'_, ()>;

    /// Rows and bytes more of its answer.
    fn add(&self, rows: u64, bytes: u64);

    /// Touches more that it has cost.
    fn add_touches(&self, touches: u64);

    /// How it ended; the first that is said counts.
    fn end(&self, ending: Ending<'_>);
}

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// It was done to its end.
    Done,
    /// It took longer than its limit.
    TimedOut,
    /// It failed, with PostgreSQL's code.
    Failed(&'a str),
}
