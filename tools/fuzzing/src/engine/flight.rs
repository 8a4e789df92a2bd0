//! Fuzz target: Flight SQL calls, as commands, tickets and actions.

use std::sync::LazyLock;

use orrery_flight::fuzzing::Called;

use super::house::house;

static CALLED: LazyLock<Called> = LazyLock::new(|| match house().host().and_then(Called::new) {
    Ok(called) => called,
    Err(error) => panic!("there is no service: {error}"),
});

/// The first byte says which call, the rest is its message.
pub(crate) fn flight(bytes: &[u8]) {
    let [call, message @ ..] = bytes else {
        return;
    };
    house().wait(CALLED.call(*call, message));
}
