#!/usr/bin/env bash
# Writes crates/orrery/function-order.ld: the functions that queries, updates and SQL spend their time in, for the linker
# to lay side by side (crates/orrery/build.rs). The program has some hundred MiB of code, of which a query runs a few
# hundred KiB; scattered, each piece takes a page and cache lines of its own.
#
#   make function-order
#
# Samples the program at work, explore queries first. Names of functions that are gone do no harm, and new ones lie where
# the linker puts them: to be run again when much has changed. Takes five minutes. Needs perf (apt-get install linux-perf).
set -euo pipefail
cd "$(dirname "$0")/.."

target="${CARGO_TARGET_DIR:?make sets it}"
orrery="$target/release/orrery"
work="$target/function-order"
list=crates/orrery/function-order.ld
port="${PORT:-7991}"
command -v perf >/dev/null || { echo "function-order: needs perf (apt-get install linux-perf)"; exit 1; }
mkdir -p "$work"

sample() { # NAME COMMAND...: where the program spends its time while a command runs, as mangled names, hottest first
    local name=$1; shift
    perf record -q -e cpu-clock:u -F 10000 -o "$work/$name.data" "$@" >/dev/null
    perf report -i "$work/$name.data" --no-demangle --sort dso,sym --stdio -w 64,4096 2>/dev/null |
        awk '$2 ~ /^orrery/ && $3 == "[.]" { print $4 }' >"$work/$name.txt"
}

rm -rf "$work/db"
"$orrery" bench bsbm generate --products 2785 -o "$work/data.nt"
"$orrery" load --db "$work/db" "$work/data.nt"
"$orrery" serve --db "$work/db" --listen "127.0.0.1:$port" >/dev/null 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
sleep 1
"$orrery" bench bsbm explore --endpoint "http://127.0.0.1:$port/sparql" --mixes 1500 --warm-up 100 >/dev/null &
driver=$!
sample explore -p $server -- sleep 8
wait $driver
kill $server
wait $server || true
trap - EXIT

sample update -- "$orrery" bench update --seconds 2 --cache "$work"
sample others -- "$orrery" bench estimates --db "$work/db" --products 2785 --sets 3 --patterns 100 --timeout 5s
sample tpch -- "$orrery" bench tpch --scale 0.1 --cache "$work"

# A function's name without the hash that each build gives it. Names that many functions have (of a generic function's
# instances only the hash differs) are left out: most of them would be others.
without_hash() { sed -E 's/17h[0-9a-f]{16}E?.*$/17h*/'; }
nm "$orrery" | awk '$2 ~ /^[tTwW]$/ { print $3 }' | without_hash | sort | uniq -c | awk '$1 > 8 { print $2 }' >"$work/many.txt"
{
    echo "/* Functions in the order in which the linker lays them: scripts/function-order.sh writes this file. */"
    echo "SECTIONS {"
    echo "  .text.frequent : {"
    { head -n 600 "$work/explore.txt"; for name in update others tpch; do head -n 200 "$work/$name.txt"; done; } | without_hash |
        awk 'NR == FNR { many[$0]; next } !($0 in many) && !seen[$0]++ { print "    *(.text." $0 ")" }' "$work/many.txt" -
    echo "  }"
    echo "}"
    echo "INSERT BEFORE .text;"
} >"$list"
echo "$list: $(grep -c '\*(' "$list") functions"
