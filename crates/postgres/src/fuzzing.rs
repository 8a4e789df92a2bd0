//! Entry points for fuzzers (`tools/fuzzing`): parsing of client bytes, before any statement runs.

use bytes::{Buf, Bytes, BytesMut};

use crate::frontend::{Body, Frontend};
use crate::parameters::value;
use crate::startup::{first_answer, negotiate, read_greeting};

/// Parses the first packet of a client, without its length, and the same bytes as the first message
/// of a password exchange.
pub fn start(bytes: &[u8]) {
    let mut packet = Body(Bytes::copy_from_slice(bytes));
    if let Ok(version) = packet.number()
        && let Ok(mut greeting) = read_greeting(version, packet)
    {
        negotiate(&mut greeting, &mut BytesMut::new());
    }
    let _ = first_answer(Bytes::copy_from_slice(bytes));
}

/// Parses messages, each with its type and its length; the values of a Bind have the types of the
/// last Parse.
pub fn messages(bytes: &[u8]) {
    let mut rest = Bytes::copy_from_slice(bytes);
    let mut types = Vec::new();
    while rest.remaining() >= 5 {
        let kind = rest.get_u8();
        let length = rest.get_u32() as usize;
        // As `Wire` does; a message that is cut off is the end.
        let Some(length) = length.checked_sub(4).filter(|length| *length <= rest.len()) else {
            return;
        };
        match Frontend::read(kind, rest.split_to(length)) {
            Ok(Frontend::Parse { types: told, .. }) => types = told,
            Ok(Frontend::Bind(bind)) => {
                for (place, bytes) in bind.values.iter().enumerate() {
                    // One format is for all values.
                    let format = match bind.formats.as_slice() {
                        [one] => *one,
                        several => several.get(place).copied().unwrap_or(0),
                    };
                    let of = types.get(place).copied().unwrap_or(0);
                    let _ = value(of, format == 1, bytes.as_ref());
                }
            }
            _ => {}
        }
    }
}
