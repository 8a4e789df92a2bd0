//! The ports of PostgreSQL and Flight SQL, and the turn to write.

pub(crate) mod port_standby;
pub(crate) mod port_statements;
pub(crate) mod port_waiting;
pub(crate) mod second_try;
pub(crate) mod turn_ends;
pub(crate) mod writers_turn;
