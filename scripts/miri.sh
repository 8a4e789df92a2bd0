#!/usr/bin/env bash
# Runs the tests over `unsafe` code under Miri, which finds what reads beyond its bytes, reads what was never written, or has
# two ways to change one place. It wants a nightly toolchain with Miri (TOOLCHAIN=nightly-2026-05-20 chooses one).
#
# room of storage              unsafe                                   here
# quads/dictionary/symbols     set_len behind FSST's compressor         its test without a trained table: training takes an hour here
# table/file/views             arrays made without arrow's checks       its tests, which are in memory for Miri's sake
# text/stored_file             a promise that lent bytes stay           no: over block files, which zstd (C) has compressed
# files/io/file_bytes          a mapping of a file                      no: Miri maps no files
#
# Beyond storage: orrery's allocator module sets options of mimalloc, which is C; the testsuite's allocator that counts hands on to
# the system's, and would have Miri build all of DataFusion for four lines.
set -euo pipefail
cd "$(dirname "$0")/.."

toolchain=${TOOLCHAIN:-nightly}
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
    rustup component add --toolchain "$toolchain" miri rust-src >/dev/null 2>&1 || true
fi
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
    echo "miri: not run: the toolchain $toolchain has no Miri, and rustup cannot add it here" >&2
    echo "miri: rustup toolchain install nightly --component miri,rust-src" >&2
    exit 1
fi

# Its products are no others'.
MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation" \
    CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/orrery/target}/miri" \
    cargo "+$toolchain" miri test -p orrery-storage --lib -- \
    quads::dictionary::symbols::tests::the_worst_case table::file::views
