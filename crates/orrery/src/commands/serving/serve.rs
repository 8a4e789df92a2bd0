//! `orrery serve`: serves a database over HTTP until SIGTERM or SIGINT.

use std::ffi::OsString;
use std::path::PathBuf;

use orrery_flight::FlightOptions;
use orrery_postgres::{Password, PostgresOptions, StartError};
use orrery_server::{
    ClientTimes, HttpOptions, MetricsToken, ServerOptions, ServiceOptions, TrustedProxies,
    stop_signal,
};
use orrery_storage::WriterOptions;
use orrery_tls::TlsFiles;

use crate::arguments::{LogFormat, ServeArguments, ServerArguments};
use crate::cluster_node::ClusterNode;
use crate::commands::foreign::foreign_of;
use crate::commands::http::authorities;
use crate::commands::maintenance::warm::warm_bytes;
use crate::commands::statements::update::allow_list;
use crate::database_place::{DatabasePlace, cache_bytes, only_a_directory};
use crate::failure::Failure;

/// Body bytes per query byte: an escaped byte takes three in a form, and there are other
/// parameters.
const FORM_BYTES_PER_BYTE: usize = 4;

pub(crate) fn run(arguments: ServeArguments, format: LogFormat) -> Result<(), Failure> {
    let tell: fn(&str, &str) = match format {
        LogFormat::Text => tell_first_administrator,
        LogFormat::Json => log_first_administrator,
    };
    let node = match arguments.cluster.cluster {
        true => Some(start_node(&arguments)?),
        false => None,
    };
    let place = match &node {
        Some(node) => DatabasePlace::in_cluster(node),
        None => arguments.database.place()?,
    };
    let mut options = ServerOptions {
        auth: arguments.server.auth.then_some(tell),
        is_process_bound: true,
        ..options(&place, &arguments.server)?
    };
    if let Some(node) = &node {
        options.stands_by = true;
        options.service.cluster = Some(node.cluster());
        options.service.divide_from = arguments.cluster.divide_from;
    }
    drop(place);
    orrery_allocator::give_back(options.memory_bytes);
    let stopped = async {
        stop_signal().await;
        if let Some(node) = &node {
            node.hurry();
        }
    };
    let served = orrery_server::serve(options, |_| {}, stopped);
    if let Some(node) = node {
        node.stop();
    }
    Ok(served?)
}

/// Starts the cluster node of this server.
fn start_node(arguments: &ServeArguments) -> Result<ClusterNode, Failure> {
    let database = &arguments.database;
    only_a_directory("serve --cluster", &database.directory)?;
    let cache_bytes = cache_bytes(&database.cache)?;
    ClusterNode::start(&database.directory, cache_bytes, &arguments.cluster)
}

/// The server's options from the command line.
pub(crate) fn options(
    place: &DatabasePlace,
    arguments: &ServerArguments,
) -> Result<ServerOptions, Failure> {
    let query_bytes_max = arguments.query_bytes_max.in_memory();
    Ok(ServerOptions {
        is_read_only: arguments.read_only,
        stands_by: arguments.stand_by,
        advertise: arguments.advertise.clone(),
        allow_writes: arguments.allow_writes,
        auth: arguments
            .auth
            .then_some(tell_first_administrator as fn(&str, &str)),
        writer: WriterOptions {
            checkpoint_bytes: arguments.checkpoint_bytes.0,
            checkpoint_quads: arguments.checkpoint_quads,
            ..WriterOptions::default()
        },
        compact_quads: arguments.compact_quads,
        warm_bytes: arguments.warm.then(|| warm_bytes(place)),
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
            allow_any_origin: arguments.cors,
            metrics_token: metrics_token(arguments)?,
            authorities: authorities()?,
            ..HttpOptions::default()
        },
        service: ServiceOptions {
            timeout_default: arguments.timeout.0,
            timeout_max: arguments.timeout_max.0,
            union_default_graph: arguments.union_default_graph,
            strict_prefixes: arguments.strict_prefixes,
            foreign: foreign_of(&arguments.foreign_allow)?,
            query_log: arguments.query_log.options(),
            audit_log: arguments.audit_log.clone(),
            otlp: arguments.watching.otlp(),
            ..ServiceOptions::default()
        },
        trust_proxy: TrustedProxies::new(arguments.trust_proxy.iter().map(String::as_str))
            .map_err(|error| Failure::Other(format!("--trust-proxy: {error}")))?,
        connections_per_address: arguments.connections_per_address,
        client_times: ClientTimes {
            upload_bytes_per_s: arguments.upload_rate.0,
            ..ClientTimes::default()
        },
        admin: arguments.admin,
        tls: arguments.tls.files(),
        oidc: arguments.oidc.options(),
        postgres: postgres(arguments)?,
        flight: flight(arguments)?,
        objects: place.objects(),
        ..ServerOptions::new(place.directory())
    })
}

/// Prints the generated administrator of a server with `--auth`.
fn tell_first_administrator(name: &str, password: &str) {
    eprintln!(
        "orrery: made the user {name} with the password {password}; it is shown once. `orrery user password {name}` makes another"
    );
}

/// Logs the generated administrator as JSON, for programs.
fn log_first_administrator(name: &str, password: &str) {
    let message = format!("made the user {name} with the password {password}; it is shown once");
    crate::log::write_json("WARN", &message);
}

/// Reads the token for `/metrics`.
fn metrics_token(arguments: &ServerArguments) -> Result<Option<MetricsToken>, Failure> {
    let Some(path) = &arguments.watching.metrics_token_file else {
        return Ok(None);
    };
    let wrong = |reason: &str| {
        Failure::Other(format!(
            "the token of /metrics in {}: {reason}",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    let token = MetricsToken::new(text.lines().next().unwrap_or_default().trim());
    let token = token.ok_or_else(|| {
        wrong("its first line has to be 16 characters of ASCII or more, without blanks")
    })?;
    Ok(Some(token))
}

/// Environment variables for passwords: all users of the machine can see a command line.
const PASSWORD_VARIABLE: &str = "ORRERY_PG_PASSWORD";
const FLIGHT_PASSWORD_VARIABLE: &str = "ORRERY_FLIGHT_PASSWORD";

/// The password of a variable. An invalid one is refused: ignoring it would let everybody on this
/// machine in.
fn password_of<P>(
    variable: &str,
    value: Option<OsString>,
    password: fn(&str) -> Option<P>,
) -> Result<Option<P>, Failure> {
    let Some(value) = value else {
        return Ok(None);
    };
    match value.to_str().and_then(password) {
        Some(password) => Ok(Some(password)),
        None => Err(Failure::Other(format!(
            "the environment's {variable} is empty or no UTF-8: set a password, or unset the variable"
        ))),
    }
}

/// The password of a file, or of a variable.
fn password<P, E>(
    file: Option<&PathBuf>,
    variable: &str,
    password: fn(&str) -> Option<P>,
    wrong: fn(PathBuf, String) -> E,
) -> Result<Option<P>, Failure>
where
    orrery_server::ServeError: From<E>,
{
    let Some(path) = file else {
        return password_of(variable, std::env::var_os(variable), password);
    };
    let wrong = |reason: String| orrery_server::ServeError::from(wrong(path.clone(), reason));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let found = password(text.lines().next().unwrap_or_default());
    Ok(Some(found.ok_or_else(|| {
        wrong("its first line is empty".to_owned())
    })?))
}

/// A certificate and its key, with the client CA that all listeners share.
fn with_client_ca((certificate, key): (PathBuf, PathBuf), arguments: &ServerArguments) -> TlsFiles {
    TlsFiles {
        client_ca: arguments.tls.tls_client_ca.clone(),
        ..TlsFiles::new(certificate, key)
    }
}

fn postgres(arguments: &ServerArguments) -> Result<Option<PostgresOptions>, Failure> {
    let given = &arguments.postgres;
    let Some(listen) = given.pg else {
        return Ok(None);
    };
    let password = password(
        given.pg_password_file.as_ref(),
        PASSWORD_VARIABLE,
        Password::new,
        |path, reason| StartError::File { path, reason },
    )?;
    let tls = given.pg_certificate.clone().zip(given.pg_key.clone());
    Ok(Some(PostgresOptions {
        password,
        tls: tls.map(|files| with_client_ca(files, arguments)),
        statement_time_default: arguments.timeout.0.min(arguments.timeout_max.0),
        statement_time_max: arguments.timeout_max.0,
        ..PostgresOptions::new(listen)
    }))
}

fn flight(arguments: &ServerArguments) -> Result<Option<FlightOptions>, Failure> {
    let given = &arguments.flight;
    let Some(listen) = given.flight else {
        return Ok(None);
    };
    let password = password(
        given.flight_password_file.as_ref(),
        FLIGHT_PASSWORD_VARIABLE,
        orrery_flight::Password::new,
        |path, reason| orrery_flight::StartError::File { path, reason },
    )?;
    let tls = given
        .flight_certificate
        .clone()
        .zip(given.flight_key.clone());
    Ok(Some(FlightOptions {
        password,
        tls: tls.map(|files| with_client_ca(files, arguments)),
        statement_time_default: arguments.timeout.0.min(arguments.timeout_max.0),
        statement_time_max: arguments.timeout_max.0,
        ..FlightOptions::new(listen)
    }))
}
