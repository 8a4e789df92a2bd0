//! `orrery serve`: HTTP until SIGTERM or SIGINT.

use std::ffi::OsString;
use std::path::Path;

use orrery_postgres::{Password, PostgresOptions, StartError, TlsFiles};
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
        postgres: postgres(arguments)?,
        ..ServerOptions::new(directory)
    })
}

/// The name of the variable that may have the password: a command line is seen by everybody on the machine.
const PASSWORD_VARIABLE: &str = "ORRERY_PG_PASSWORD";

/// The password of the variable. One that is set and cannot be meant is refused: without a word, everybody on this machine would be let in.
fn password_of(value: Option<OsString>) -> Result<Option<Password>, Failure> {
    let Some(value) = value else {
        return Ok(None);
    };
    let password = value.to_str().and_then(Password::new);
    match password {
        Some(password) => Ok(Some(password)),
        None => Err(Failure::Other(format!(
            "the environment's {PASSWORD_VARIABLE} is empty or no UTF-8: set a password, or unset the variable"
        ))),
    }
}

fn postgres(arguments: &ServerArguments) -> Result<Option<PostgresOptions>, Failure> {
    let given = &arguments.postgres;
    let Some(listen) = given.pg else {
        return Ok(None);
    };
    let password = match &given.pg_password_file {
        Some(path) => {
            let wrong = |reason: String| {
                let path = path.clone();
                orrery_server::ServeError::from(StartError::File { path, reason })
            };
            let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
            let line = text.lines().next().unwrap_or_default();
            let password = Password::new(line);
            Some(password.ok_or_else(|| wrong("its first line is empty".to_owned()))?)
        }
        None => password_of(std::env::var_os(PASSWORD_VARIABLE))?,
    };
    let tls = given.pg_certificate.clone().zip(given.pg_key.clone());
    Ok(Some(PostgresOptions {
        password,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        statement_time_default: arguments.timeout.0.min(arguments.timeout_max.0),
        statement_time_max: arguments.timeout_max.0,
        ..PostgresOptions::new(listen)
    }))
}
