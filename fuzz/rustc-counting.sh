#!/usr/bin/env bash
# rustc for cargo (RUSTC_WRAPPER, RUSTC_WORKSPACE_WRAPPER): our crates, and the parsers of others, get the counters that libFuzzer steers by (as `cargo fuzz -s none`
# does, on stable), and the checks of a debug build.
rustc=$1; shift
previous=; name=
for argument in "$@"; do
  [ "$previous" = --crate-name ] && name=$argument
  previous=$argument
done
case $name in
  orrery_*|ox*|spar*|quick_xml|json_event_parser)
    exec "$rustc" "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
      -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing \
      -Cdebug-assertions=on -Coverflow-checks=on -Cdebuginfo=line-tables-only ;;
  *) exec "$rustc" "$@" ;;
esac
