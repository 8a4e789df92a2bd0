#!/usr/bin/env bash
# Runs each fuzz target for so many minutes (MINUTES=1), or those that are named (TARGETS="turtle log"), and tells its executions.
# What crashes is kept in fuzz/found/TARGET, which git does not.
#
# There are two fuzzers. The light one, of parsers and readers of files, is a workspace of its own. What stands on the query engine is built in this one, where
# only our crates are built anew, with counters: DataFusion is the one that `make build` made. Each is built only where one of its targets is asked for.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$((${MINUTES:-1} * 60))
target_dir=${FUZZ_TARGET_DIR:-$HOME/.cache/orrery/fuzz}
# Those of the table of targets that are the engine's, which is the only list of them.
on_the_engine=" $(sed -n 's/^ *target("\([a-z-]*\)", engine::.*/\1/p' tools/fuzzing/src/lib.rs | tr '\n' ' ')"

build_light() {
  (cd fuzz && RUSTC_WRAPPER=$PWD/rustc-counting.sh CARGO_TARGET_DIR=$target_dir cargo build --release --locked)
  light_fuzzer=$target_dir/release/orrery-fuzz
}

build_engine() {
  local products=${CARGO_TARGET_DIR:-$HOME/.cache/orrery/target}
  # A wrapper of the workspace alone: what it makes is kept beside what is made without it.
  RUSTC_WORKSPACE_WRAPPER=$PWD/fuzz/rustc-counting.sh CARGO_TARGET_DIR=$products \
    cargo build --release --locked --workspace --features orrery-fuzzing/libfuzzer --bin orrery-fuzz-engine \
    --config profile.release.opt-level=1 --config profile.release.package.orrery-flight.opt-level=0
  engine_fuzzer=$products/release/orrery-fuzz-engine
}

light=() engine=()
for seeds in fuzz/seeds/*; do
  name=$(basename "$seeds")
  [ -z "${TARGETS:-}" ] || [[ " $TARGETS " == *" $name "* ]] || continue
  case $on_the_engine in *" $name "*) engine+=("$name") ;; *) light+=("$name") ;; esac
done

failed=0
run() {
  local fuzzer=$1 name=$2 seeds=fuzz/seeds/$2
  mkdir -p "fuzz/found/$name" "$target_dir/corpus/$name"
  local log=$target_dir/$name.log state=ok
  # The corpus grows outside of the clone; seeds are read only.
  ORRERY_FUZZ_TARGET=$name "$fuzzer" "$target_dir/corpus/$name" "$seeds" \
    -max_total_time=$seconds -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="fuzz/found/$name/" >"$log" 2>&1 || { state="CRASH, see fuzz/found/$name and $log"; failed=1; }
  local executions covered
  # A crash at once tells neither.
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  covered=$(sed -n 's/.*\(cov: [0-9]*\).*/\1/p' "$log" | tail -1)
  printf '%-18s %12s executions  %s  %s\n' "$name" "${executions:-?}" "$covered" "$state"
}

if [ ${#light[@]} -gt 0 ]; then
  build_light
  for name in "${light[@]}"; do run "$light_fuzzer" "$name"; done
fi
if [ ${#engine[@]} -gt 0 ]; then
  build_engine
  for name in "${engine[@]}"; do run "$engine_fuzzer" "$name"; done
fi
exit $failed
