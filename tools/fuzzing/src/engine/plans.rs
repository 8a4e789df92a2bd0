//! Fuzz target: encoded plans of another process.
//!
//! Bytes at random would end at the checksum, or at the head of another database. So the target is
//! given the nodes alone, as they are written (a list of JSON), and puts the preamble and the head
//! of a good plan before them; what begins with a brace is head and nodes.

use std::sync::LazyLock;

use orrery_operators::codec::{CodecError, EncodedPlan};
use orrery_operators::{ContextOptions, codec};
use orrery_sparql::QueryOptions;

use super::house::house;

/// The last bytes of the preamble.
const CHECKSUM_BYTES: usize = 4;
const NODES: &str = "\"nodes\":";

/// What stands before the body, without the checksum, and the body up to the nodes.
struct Good {
    preamble: Vec<u8>,
    head: String,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| good("SELECT * { ?s ?p ?o }").0);

/// The plan of a query: what stands before its nodes, and these.
fn good(query: &str) -> (Good, String) {
    let bytes = match encoded(query) {
        Ok(bytes) => bytes,
        Err(error) => panic!("the good plan was not made: {error}"),
    };
    // Not at the first brace: the checksum may hold one.
    let at = codec::PREAMBLE_BYTES;
    let body = String::from_utf8_lossy(&bytes[at..]).into_owned();
    let nodes = body.find(NODES).unwrap_or(0);
    let good = Good {
        preamble: bytes[..at - CHECKSUM_BYTES].to_vec(),
        head: body[..nodes].to_owned(),
    };
    let nodes = body[nodes + NODES.len()..].trim_end_matches('}');
    (good, nodes.to_owned())
}

fn encoded(query: &str) -> Result<Vec<u8>, orrery_sparql::QueryError> {
    let prepared = house().engine.prepare(query, &QueryOptions::of_process())?;
    prepared.encoded_plan(codec::Destination {
        processes: 1,
        has_shares: false,
    })
}

/// Reads a plan and makes it. It is not run.
pub(crate) fn plans(bytes: &[u8]) {
    // Errors are answers.
    let _ = make_plan(bytes);
}

/// Makes a plan out of its nodes.
///
/// # Errors
/// When they are none of a plan.
pub fn make_plan(bytes: &[u8]) -> Result<(), CodecError> {
    let body = match bytes.first() {
        Some(b'{') => bytes.to_vec(),
        _ => [GOOD.head.as_bytes(), NODES.as_bytes(), bytes, b"}"].concat(),
    };
    let checksum = crc32c::crc32c(&body).to_le_bytes();
    let plan = [&GOOD.preamble[..], &checksum, &body].concat();
    let plan = EncodedPlan::read(&plan)?;
    let snapshot = plan.snapshot(house().engine.database())?;
    plan.build(snapshot, ContextOptions::default(), None, 1)?;
    Ok(())
}

/// The nodes of a query's plan, as they are written.
pub fn nodes_of(query: &str) -> String {
    good(query).1
}
