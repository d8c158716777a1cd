#!/usr/bin/env bats
# No command decides by bytes that it has not written: checked by valgrind's memcheck.

load helper

# checked ARG...: runs sluice under memcheck, which answers 99 if it finds anything.
checked() {
  valgrind --quiet --error-exitcode=99 --leak-check=no "$SLUICE" "$@"
}

@test "states are written, read, merged and sent as deltas" {
  seq 1 3000 >first
  seq 2000 4000 >second
  checked dedup --stats none --state a first -o out
  cp a old
  checked dedup --stats none --state a second -o out
  [ "$(wc -l <out)" -eq 4000 ]
  checked inspect a >/dev/null
  checked delta old a -o change
  checked apply old change -o new
  cmp new a
  cp a b
  checked merge a b -o both >/dev/null
}

@test "every kind of filter is saved and loaded" {
  seq 1 500 >input
  local filter
  for filter in exact bloom bloom,layout=classic counting dynamic growing stable reservoir; do
    checked dedup --stats none --expect 1000 --filter "$filter" --state "$filter" input >/dev/null
    checked inspect "$filter" >/dev/null
  done
  for filter in exact cohort apbf apbbf timing timer; do
    checked dedup --stats none --window 200 --filter "$filter" --fpr 1% --state "w$filter" input \
      >/dev/null
    checked inspect "w$filter" >/dev/null
  done
}

@test "records of every format are read" {
  printf 'id,at\n' >input.csv
  for minute in {10..59}; do
    printf '%d,2026-01-01T10:%d:00Z\n' "$minute" "$minute" >>input.csv
    printf '{"id":%d,"at":"2026-01-01T10:%d:00Z"}\n' "$minute" "$minute" >>input.json
  done
  checked dedup --csv --key id --event-time at --window 10m --audit 1/2 --stats json input.csv \
    >out 2>err
  checked dedup --json --key /id --event-time /at --window 10m --stats json input.json >out 2>err
  checked dedup --key 1 -d , --memory 16MiB --stats text input.csv >out 2>err
}
