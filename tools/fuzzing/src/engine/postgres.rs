//! Fuzz target: messages of PostgreSQL's clients.

use orrery_postgres::fuzzing;

/// The first packet, and the first words of the password exchange.
pub(crate) fn postgres_start(bytes: &[u8]) {
    fuzzing::start(bytes);
}

/// Messages one after the other, with the values that they bind.
pub(crate) fn postgres_messages(bytes: &[u8]) {
    fuzzing::messages(bytes);
}
