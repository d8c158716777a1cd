#!/usr/bin/env bats
# What is said on standard error: --stats, warnings, progress.
load helper

@test "--stats json: the last line is one object, and it adds up" {
  lines_of 20k >input
  sluice dedup --stats json --expect 14k --fpr 1e-6 input >out 2>err
  tail -n 1 err | jq --exit-status . >/dev/null
  [ "$(stat_of '.records == .distinct + .duplicates + .unkeyed + .late')" = true ]
  [ "$(stat_of .records)" = 20000 ]
  [ "$(stat_of .distinct)" = "$(wc -l <out)" ]
  [ "$(stat_of .bytes_in)" = "$(stat -c %s input)" ]
  [ "$(stat_of .bytes_out)" = "$(stat -c %s out)" ]
  [ "$(stat_of '.filter.name, .filter.capacity, .filter.keys == .distinct' | xargs)" = "bloom 14000 true" ]
  [ "$(stat_of '(.filter.bits_per_key - 8 * .filter.bytes / .filter.capacity) | fabs < 0.001')" = true ]
  [ "$(stat_of '.filter.predicted_fpr > 0 and .filter.predicted_fpr <= 1.01e-6')" = true ]
  [ "$(stat_of '.seconds > 0 and .records_per_second > 0 and .memory_bytes > .filter.bytes')" = true ]
  [ "$(stat_of '.records_per_second * .seconds / .records | . > 0.999 and . < 1.001')" = true ]
}

# The system counts the memory of the process that started a command as the command's own.
@test "--stats json: memory_bytes is not that of the process that started the run" {
  grep -q __asan_init "$SLUICE" && skip "the sanitizer takes memory of its own"
  large=$(printf '%*s' 100000000 x)
  echo line | "$SLUICE" dedup --stats json --expect 1k >out 2>err
  [ "${#large}" = 100000000 ]
  [ "$(stat_of '.memory_bytes > 1e6 and .memory_bytes < 5e7')" = true ]
}

@test "--stats json: bits per key are of the keys held when the filter is unbounded" {
  lines_of 20k >input
  sluice dedup --stats json --filter exact input >out 2>err
  [ "$(stat_of '.filter.name, .filter.capacity, .filter.predicted_fpr' | xargs)" = "exact 0 0" ]
  [ "$(stat_of '(.filter.bits_per_key - 8 * .filter.bytes / .filter.keys) | fabs < 0.001')" = true ]
}

@test "--stats json: no records, unkeyed records, several inputs" {
  sluice dedup --stats json --filter exact /dev/null >out 2>err
  [ "$(stat_of '[.records,.bytes_in,.bytes_out,.records_per_second,.filter.bits_per_key]|join(" ")')" = "0 0 0 0 0" ]
  printf 'x 1\ny' >one
  printf 'z 1\n' >two
  sluice dedup --stats json -n 10 --key 2 one two >out 2>err
  holds out 'x 1\ny'
  [ "$(stat_of '[.records,.distinct,.duplicates,.unkeyed,.malformed,.late]|join(" ")')" = "3 1 1 1 0 0" ]
  [ "$(stat_of '[.bytes_in,.bytes_out]|join(" ")')" = "9 5" ]
}

@test "--stats json: a header is bytes and no record" {
  printf 'id\n1\n1\n' | sluice dedup --stats json -n 10 --csv >out 2>err
  [ "$(stat_of '[.records,.bytes_in,.bytes_out]|join(" ")')" = "2 7 5" ]
}

@test "--stats text: the counts, the filter, the error, for people" {
  printf 'a\nb\na\n' >input
  run -0 --separate-stderr sluice dedup -n 1k input
  says "3 records" distinct duplicates "planned for 1,000 keys" "predicted false positives" "bits per key"
}

@test "an unsized run grows, and an unsized Bloom filter states its capacity" {
  echo a >input
  run -0 --separate-stderr sluice dedup input
  says growing
  [[ $stderr != *"no --expect"* ]]
  run -0 --separate-stderr sluice dedup --filter bloom input
  says "no --expect" "8,000,000"
  run -0 --separate-stderr sluice dedup --filter bloom,layout=classic input
  says "no --expect" "8,000,000"
  run -0 --separate-stderr sluice dedup --filter bloom,keys=8M input
  [[ $stderr != *"no --expect"* ]]
}

@test "--stats none is silent" {
  lines_of 1000 >input
  run -0 --separate-stderr sluice dedup --stats none input
  [ -z "$stderr" ]
}

@test "a filter past its capacity warns, once, whatever --stats says" {
  lines_of 200k >input
  for stats in text json none; do
    sluice dedup --stats "$stats" --expect 1000 input >out 2>err
    [ "$(grep -c 'warning: the filter holds' err)" -eq 1 ]
    grep 'warning:' err | grep -q -e 'planned for 1,000.*target of 1e-06.*--expect'
  done
  sluice dedup --stats json --expect 1000 input 2>err >out
  [ "$(stat_of .filter.over_target)" = true ]
  sluice dedup --stats none --expect 200k input >out 2>err
  [ ! -s err ]
}

# The fill of a small table varies by chance.
@test "within its plan a small filter does not warn; beyond it, no two equal numbers are compared" {
  for seed in $(seq 20); do
    seq 300 | sluice dedup --filter counting --expect 300 --fpr 0.02 --seed "$seed" --stats none >out 2>err
    [ ! -s err ]
  done
  seq 100000 >input
  sluice dedup --filter stable,bytes=2048,max=3 --fpr 0.05 --seed 1 --stats none input >out 2>err
  [ ! -s err ]
  # The parameters that just hold it on average.
  sluice dedup --filter stable,bytes=2048,max=3,probes=4,decrements=17 --fpr 0.05 --seed 1 --stats none input >out 2>err
  grep 'warning:' err | grep -q 'above the target of 0.05: its parameters are for a higher error'
  [ "$(grep -c 'is 0.05, above the target of 0.05\|--rate' err)" -eq 0 ]
}

@test "how many it says it lost is about how many it lost" {
  lines_of 200k >input
  sluice dedup --stats json --expect 50k --fpr 1% --seed 1 input 2>err >out
  lost=$(($(sort -u input | wc -l) - $(wc -l <out)))
  echo "lost $lost, expected $(stat_of .filter.expected_lost)"
  [ "$lost" -gt 5000 ]
  [ "$(stat_of "(.filter.expected_lost / $lost) | . > 0.9 and . < 1.1")" = true ]
}

# on_terminal FILE COMMAND: runs it with standard error on a terminal whose bytes end in FILE.
on_terminal() {
  script --quiet --return --command "$2" "$1" >/dev/null </dev/null
}

@test "progress is shown on a terminal, and only there" {
  lines_of 100k >input
  on_terminal seen '"$SLUICE" dedup input >out'
  grep -q 'records .*% duplicates' seen
  grep -q $'\r' seen
  sluice dedup input >out 2>err
  run -1 grep -q $'\r' err
}

@test "progress tells percent and time left of files, and nothing of pipes" {
  lines_of 100k >input
  on_terminal seen '"$SLUICE" dedup input >out'
  grep -qE '[0-9]+ %  [0-9,]+ records  ' seen
  on_terminal seen 'cat input | "$SLUICE" dedup >out'
  grep -qE '[0-9] records  ' seen
  run -1 grep -qE '[0-9]+ %  [0-9,]+ records' seen
  # One input of unknown size: the whole is not known.
  on_terminal seen 'echo end | "$SLUICE" dedup input - >out'
  run -1 grep -qE '[0-9]+ %  [0-9,]+ records' seen
  # The time left is told from the first second on. A reader that is in no hurry makes it last.
  on_terminal seen '"$SLUICE" dedup input input input | (sleep 1.5 && cat) >out'
  grep -qE '[0-9]+ %  [0-9]+s left  [0-9,]+ records  ' seen
}

@test "progress never shares a line with records: none if both are on a terminal" {
  lines_of 1000 >input
  on_terminal seen '"$SLUICE" dedup --stats none input'
  tr -d '\r' <seen | grep -c '^evt-' >lines
  sluice dedup --stats none input | wc -l | cmp - lines
  run -1 grep -q 'duplicates' seen
  # On a terminal, but not the records.
  on_terminal seen '"$SLUICE" dedup --stats none -o result input'
  grep -q 'records .*% duplicates' seen
}

@test "colours on a terminal, none with NO_COLOR or elsewhere" {
  run -1 on_terminal seen '"$SLUICE" dedup no-such-file'
  grep -q $'\e\[31m' seen
  export NO_COLOR=1
  run -1 on_terminal seen '"$SLUICE" dedup no-such-file'
  grep -q 'error: ' seen
  run -1 grep -q $'\e' seen
  unset NO_COLOR
  run -1 --separate-stderr sluice dedup no-such-file
  [[ $stderr != *$'\e'* ]]
}
