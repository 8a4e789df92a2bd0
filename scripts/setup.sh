#!/usr/bin/env bash
# Makes a bare machine ready to build: a Rust toolchain, a C compiler (zstd and
# bzip2 are C), rustfmt and clippy. Does nothing where all of it is there.
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
