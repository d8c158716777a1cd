#!/usr/bin/env bats
# The other commands: help, version, filters, inspect, model, generate.
load helper

@test "help: with nothing to read on a terminal, on request, and for nothing at all" {
  run -2 script --quiet --return --command '"$SLUICE" dedup' /dev/null
  [[ $output == *"Usage: sluice dedup ["* ]]
  [[ $output == *"Usage: sluice dedup"* ]]
  [[ $output == *--key* ]]
  run -0 --separate-stderr sluice dedup --help
  [[ $output == *"Usage: sluice dedup"* ]]
  [[ $output == *Examples:* ]]
  [ -z "$stderr" ]
  run -2 --separate-stderr sluice
  [ -z "$output" ]
  says dedup generate filters inspect
  run -0 sluice --help-all
}

@test "--version: version, compiler, instruction set" {
  run -0 --separate-stderr sluice --version
  [[ ${lines[0]} =~ ^sluice\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
  [[ ${lines[1]} == "compiler "* ]]
  [[ ${lines[2]} == "simd "* ]]
}

@test "filters: every one with its parameters, meaning and range" {
  run -0 --separate-stderr sluice filters
  [[ $output == *bloom:*layout*probes*exact:*keys*cohort:*slot*generations*none:* ]]
  [ -z "$stderr" ]
  sluice filters --json >out
  jq --exit-status --slurp '(map(.name) | contains(["bloom", "exact", "cohort", "none"])) and
    all(.[].parameters[]; (.meaning | length > 0) and (.range | length > 0))' out
  # Each is a filter that dedup knows.
  for name in $(jq --raw-output .name out); do printf 'a\n' | gives 'a\n' --filter "$name"; done
}

@test "answers that cannot be written are errors" {
  echo a | sluice dedup "${quiet[@]}" --state s >/dev/null
  for command in filters model "model apbf --k 2 --l 3" --version --help "inspect s" "generate lines" "generate clicks"; do
    run -1 --separate-stderr bash -c "\"\$SLUICE\" $command >/dev/full"
    says "No space left"
  done
}

@test "inspect describes a snapshot and never prints its secret" {
  printf 'a\nb\na\n' | sluice dedup --stats none -n 1k --fpr 1e-4 --seed 1 --key 1 -d : --state s >/dev/null
  run -0 --separate-stderr sluice inspect s
  [[ $output == *bloom*0.0001*"keys held"*2*"1,000"*xxh3* ]]
  [[ $output == *key*1* ]]
  sluice inspect s --json >json
  jq --exit-status '.filter == "bloom" and .keys == 2 and .capacity == 1000 and .hash == "xxh3"' json
  # The secret is a function of the seed, and the only part of the file that the seed decides in a
  # filter without keys: find it by comparing, then look for it in what was printed.
  : | sluice dedup --stats none -n 1k --seed 1 --state one >/dev/null
  : | sluice dedup --stats none -n 1k --seed 2 --state two >/dev/null
  at=$(cmp -l one two | head -n 1 | awk '{ print $1 - 1 }') || true
  secret=$(od -An -tx1 -v -j "$at" -N 8 one | tr -d ' \n')
  for printed in "$(sluice inspect one | od -An -tx1 -v | tr -d ' \n')" \
    "$(sluice inspect one)" "$(sluice inspect --json one)"; do
    [[ ${printed,,} != *"$secret"* ]]
  done
}

@test "what others chose is shown without its control characters" {
  key=$(printf '/a\033[31m\nb')
  printf '{}\n' | sluice dedup "${quiet[@]}" --json --key "$key" --key "$(printf '/\xff')" --state s >/dev/null
  run -0 --separate-stderr sluice inspect s
  [[ $output == *'/a\x1b[31m\nb'* && $output == *'/\xff'* && $output != *$'\033'* ]]
  sluice inspect --json s >json
  jq --exit-status '.labels == [["records", "json"], ["key", "/a\u001b[31m\nb"], ["key", "/\ufffd"]]' json
  printf 'a\033b\n' >one.csv
  printf 'other\n' >two.csv
  run -1 --separate-stderr sluice dedup "${quiet[@]}" --csv one.csv two.csv
  says 'a\x1bb'
  refused 2 dedup "$(printf -- '--no\033such')" one.csv
  [[ $stderr != *$'\033'* ]]
}

@test "inspect tells of how many pieces a series is" {
  seq 1 250 | sluice dedup --stats none --filter dynamic,keys=100,forget=yes --state s >/dev/null 2>&1
  run -0 --separate-stderr sluice inspect s
  [[ $output == *"pieces"*"3, room for 50 more keys"* ]]
  sluice inspect s --json >json
  jq --exit-status '.series == {"pieces": 3, "room": 50, "kept": 0, "real_capacity": 300}' json
}

@test "inspect refuses what is no whole snapshot, and changes nothing" {
  printf 'a\n' | sluice dedup "${quiet[@]}" --state s >/dev/null
  head -c 1000 s >half
  cp half before
  refused 2 inspect half
  says "'half'"
  cmp half before
  echo text >text
  refused 2 inspect text
  says "'text' is not a sluice snapshot"
  refused 2 inspect no-such-file
  says no-such-file
  refused 2 inspect
}

@test "model: the list, one model, for people and for programs" {
  run -0 --separate-stderr sluice model
  [[ $output == *apbf:*--k*--l*prints*fpr_linear*sliced:*--rule* ]]
  [ -z "$stderr" ]
  run -0 --separate-stderr sluice model apbf --k 10 --l 7
  [[ $output =~ fpr_linear\ +0\.00121104.*fpr_exact\ +0\.00147354.*bits_per_key\ +35\.03 ]]
  sluice model apbf --k=10 --l 7 --json >out
  jq --exit-status '.model == "apbf" and (.fpr_exact * 1e8 | round) == 147355 and .slack > 1.42' out
  sluice model --json apbf --l 7 --k 10 >two
  cmp out two
  sluice model --json >out
  jq --exit-status --slurp 'length > 20 and all(.[]; (.summary | length > 0) and (.outputs | length > 0))' out
  # What has no value is no number.
  run -0 sluice model sliced --m 1k --k 4 --n 900 --slices 4 --failed 1 --limit 0.01
  [[ $output =~ sites_for_fpr\ +none ]]
  run -0 sluice model sliced --m 1k --k 4 --n 900 --slices 4 --failed 1 --limit 0.01 --json
  [[ $output == *'"sites_for_fpr":null'* ]]
  run -0 sluice model lower-bound --help
  [[ $output == "lower-bound: "*--slack* ]]
}

@test "model: what is wrong is refused with what would be right" {
  refused 2 model no-such
  says "'no-such'" bloom apbf sliced
  refused 2 model apbf --k 10
  says apbf --l
  refused 2 model apbf --k 10 --q 7
  says --q "--k, --l"
  refused 2 model apbf --k 10 --l
  says "--l has no value"
  refused 2 model apbf --k 10 --k 3 --l 7
  says twice
  refused 2 model apbf --k 1.5 --l 7
  says --k "'1.5'" "whole number from 1 to"
  refused 2 model sliced --layout tall --m 1k --k 4 --n 10 --slices 2
  says "'tall'" "horizontal, vertical"
  refused 2 model apbf ten
  says "'ten'"
  refused 2 model --k 10 apbf
  says NAME
}

@test "generate: the same seed gives the same bytes, another seed others" {
  for kind in lines clicks; do
    sluice generate "$kind" -n 2k --seed 3 >one 2>/dev/null
    sluice generate "$kind" -n 2k --seed 3 --output two 2>/dev/null
    sluice generate "$kind" -n 2k --seed 4 >three 2>/dev/null
    cmp one two
    run -1 cmp one three
  done
}

@test "generate: the counts it states are real" {
  sluice generate lines -n 10k --duplicates 25% --length 50 >input 2>said
  [ "$(wc -l <input)" = 10000 ]
  [ "$(stat -c %s input)" = 510000 ]
  distinct=$(sort -u input | wc -l)
  grep -q "generated 10,000 records .*: $(printf "%'d" "$distinct" | sed 's/^\([0-9]\{1,3\}\)\([0-9]\{3\}\)$/\1,\2/') distinct" said
  sluice generate clicks -n 10k --malformed 1% >input 2>said
  sluice dedup --json --key /user,/ad --filter exact --stats json input 2>err >out
  grep -q "$(stat_of .distinct | sed 's/...$/,&/') distinct, $(stat_of .duplicates | sed 's/...$/,&/') duplicates, $(stat_of .unkeyed) malformed" said
}

@test "generate: a reader that leaves is no error" {
  run -0 bash -c 'set -o pipefail; "$SLUICE" generate lines -n 10M 2>err | head -n 1'
  [ "${#lines[@]}" -eq 1 ]
  [ ! -s err ]
}

@test "generate: wrong values are refused" {
  refused 2 generate lines --length 3
  says --length 20
  refused 2 generate lines --duplicates 2
  says --duplicates
  refused 2 generate lines --records many
  says --records "'many'"
  refused 2 generate clicks --skew x
  says "--skew 'x' is not a number"
  refused 2 generate clicks --skew 5
  says --skew
  refused 2 generate clicks --users 0
  says --users
  refused 2 generate noise
  refused 1 generate lines --output no-such-folder/x
  says no-such-folder/x
}
