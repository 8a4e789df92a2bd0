#!/usr/bin/env bash
# Runs each fuzz target for so many minutes (MINUTES=1), or those that are named (TARGETS="turtle log"), and tells its executions.
# What crashes is kept in fuzz/found/TARGET, which git does not.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$((${MINUTES:-1} * 60))
target_dir=${FUZZ_TARGET_DIR:-$HOME/.cache/orrery/fuzz}
(cd fuzz && RUSTC_WRAPPER=$PWD/rustc-counting.sh CARGO_TARGET_DIR=$target_dir cargo build --release --locked)
failed=0
for seeds in fuzz/seeds/*; do
  name=$(basename "$seeds")
  [ -z "${TARGETS:-}" ] || [[ " $TARGETS " == *" $name "* ]] || continue
  mkdir -p "fuzz/found/$name" "$target_dir/corpus/$name"
  log=$target_dir/$name.log
  state=ok
  # The corpus grows outside of the clone; seeds are read only.
  ORRERY_FUZZ_TARGET=$name "$target_dir/release/orrery-fuzz" "$target_dir/corpus/$name" "$seeds" \
    -max_total_time=$seconds -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="fuzz/found/$name/" >"$log" 2>&1 || { state="CRASH, see fuzz/found/$name and $log"; failed=1; }
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  covered=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
  printf '%-14s %12s executions  %s  %s\n' "$name" "${executions:-?}" "$covered" "$state"
done
exit $failed
