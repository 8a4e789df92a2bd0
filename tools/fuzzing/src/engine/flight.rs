//! Fuzz target: Flight SQL calls, as commands, tickets and actions.

use std::sync::LazyLock;

use orrery_flight::fuzzing::Called;
use orrery_sql::{Host, WriterSource};

use super::house::house;

static CALLED: LazyLock<Called> = LazyLock::new(|| {
    // It only reads: what one call changed, the next one would find.
    let host = Host {
        writer: WriterSource::Fixed(None),
        ..house().host()
    };
    match Called::new(host) {
        Ok(called) => called,
        Err(error) => panic!("there is no service: {error}"),
    }
});

/// The first byte says which call, the rest is its message.
pub(crate) fn flight(bytes: &[u8]) {
    let [call, message @ ..] = bytes else {
        return;
    };
    house().wait(CALLED.call(*call, message));
}
