//! The invariant data of the soak test.

/// Accounts, each with this balance at first.
pub(super) const ACCOUNTS: u32 = 1_000;

pub(super) const BALANCE: u64 = 100;

/// Quads beside the accounts, so that compactions have something to do.
pub(super) const FILLER_QUADS: u32 = 200_000;

/// Quads of each graph that comes and goes, and how many such graphs there are.
pub(super) const TURNOVER_QUADS: u64 = 500;

pub(super) const TURNOVER_GRAPHS: u64 = 20;

/// Quads of a bulk load.
pub(super) const LOAD_QUADS: u64 = 20_000;
