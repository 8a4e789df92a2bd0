//! `orrery serve`: HTTP until SIGTERM or SIGINT.

use std::path::Path;

use orrery_server::{HttpOptions, ServerOptions, stop_signal};
use orrery_storage::WriterOptions;

use super::update::allow_list;
use super::warm::available_bytes;
use crate::arguments::{ServeArguments, ServerArguments};
use crate::failure::Failure;

/// A query that is sent by a form has three bytes for each that is escaped, and there are other parameters.
const FORM_BYTES_PER_BYTE: usize = 4;

pub(crate) fn run(arguments: ServeArguments) -> Result<(), Failure> {
    let options = ServerOptions {
        is_process_bound: true,
        ..options(&arguments.database.directory, &arguments.server)?
    };
    crate::allocator::give_back(options.memory_bytes);
    orrery_server::serve(options, |_| {}, stop_signal())?;
    Ok(())
}

/// The server's settings from the command line.
pub(crate) fn options(
    directory: &Path,
    arguments: &ServerArguments,
) -> Result<ServerOptions, Failure> {
    let query_bytes_max = arguments.query_bytes_max.in_memory();
    Ok(ServerOptions {
        is_read_only: arguments.read_only,
        allow_writes: arguments.allow_writes,
        writer: WriterOptions {
            checkpoint_bytes: arguments.checkpoint_bytes.0,
            checkpoint_quads: arguments.checkpoint_quads,
            ..WriterOptions::default()
        },
        compact_quads: arguments.compact_quads,
        warm_bytes: arguments.warm.then(available_bytes),
        load_dir: arguments.sources.load_dir.clone(),
        load_allow: allow_list(&arguments.sources)?,
        listen: arguments.listen,
        memory_bytes: arguments.memory.0,
        threads: arguments.threads,
        endpoints: arguments.endpoints.options()?,
        query_bytes_max,
        http: HttpOptions {
            body_bytes_max: HttpOptions::default()
                .body_bytes_max
                .max(query_bytes_max.saturating_mul(FORM_BYTES_PER_BYTE)),
            allow_hosts: arguments.allow_host.clone(),
            timeout_default: arguments.timeout.0,
            timeout_max: arguments.timeout_max.0,
            allow_any_origin: arguments.cors,
            union_default_graph: arguments.union_default_graph,
            strict_prefixes: arguments.strict_prefixes,
            ..HttpOptions::default()
        },
        ..ServerOptions::new(directory)
    })
}
