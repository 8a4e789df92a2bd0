#!/usr/bin/env bash
# Counts the instructions of the hot paths under callgrind, and compares them with the kept figures
# (tools/testsuite/costs/instructions.txt). Counts do not depend on how busy the machine is, so that a slow change
# is seen on any machine; they depend on the compiler and on what the processor can do. Where these are not those of
# the kept figures (machine.txt beside them), `check` shows the differences and does not fail.
#
#   scripts/instructions.sh show      prints the figures and what differs
#   scripts/instructions.sh check     the same, and fails where a path got dearer, or is not in the kept figures
#   scripts/instructions.sh accept    keeps the figures, and those of the allocations
#
# Takes about a minute beyond the build. Without valgrind nothing is counted, and nothing fails.
set -euo pipefail
cd "$(dirname "$0")/.."

mode="${1:-show}"
# Hash tables start from other seeds in each run, which moves the figures by one in a hundred at most.
percent="${INSTRUCTIONS_PERCENT:-4}"
target="${CARGO_TARGET_DIR:?make sets it}"
# The frame of the measured work, by its whole name: dumps are not made for patterns.
frame=orrery_testsuite::costs::path::measured_cost_path
costs="$target/release/costs"
kept="tools/testsuite/costs"
work="$target/costs"
machine="$(rustc --version), $(grep -o -m1 -w avx2 /proc/cpuinfo || echo 'no avx2'), $(valgrind --version 2>/dev/null || true)"

if ! command -v valgrind >/dev/null; then
    echo "instructions: skipped, for valgrind is not installed (apt-get install valgrind)"
    exit 0
fi
mkdir -p "$work"
"$costs" prepare "$work"

count() {
    rm -f "$work"/callgrind.out*
    valgrind --tool=callgrind --callgrind-out-file="$work/callgrind.out" --log-file="$work/valgrind.log" \
        --toggle-collect="$frame" --dump-after="$frame" \
        "$costs" measure "$work" || { tail -5 "$work/valgrind.log"; exit 1; }
    "$costs" collect "$work" "$work/callgrind.out" >"$work/instructions.txt"
}

# A path that waits for others (`run star join`) takes some 6 % more in one run of several: what is dearer is dearer each time.
compare() {
    local attempt
    for attempt in 1 2 3; do
        "$costs" compare "$kept/instructions.txt" "$work/instructions.txt" "$percent" && return 0
        [ "$attempt" -eq 3 ] || count
    done
    return 1
}

count

case "$mode" in
show)
    cat "$work/instructions.txt"
    "$costs" compare "$kept/instructions.txt" "$work/instructions.txt" "$percent" || true
    ;;
check)
    compare || {
        if [ "$machine" != "$(cat "$kept/machine.txt")" ]; then
            echo "instructions: not compared, for the kept figures are of another machine: $(cat "$kept/machine.txt")"
            exit 0
        fi
        echo "instructions: a path takes more than it did; if that is meant: make instructions-accept"
        exit 1
    }
    ;;
accept)
    cp "$work/instructions.txt" "$kept/instructions.txt"
    echo "$machine" >"$kept/machine.txt"
    "$costs" allocations "$work" >"$work/allocations.txt"
    cp "$work/allocations.txt" "$kept/allocations.txt"
    ;;
*)
    echo "usage: scripts/instructions.sh show|check|accept" >&2
    exit 2
    ;;
esac
