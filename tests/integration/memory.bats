#!/usr/bin/env bats
# --memory: a budget for the whole process, and what it is spent on.
load helper

# within_budget MIB ARG...: a run over ./input whose peak resident size, as the kernel tells it, is
# the budget or less, and not half of it unused.
within_budget() {
  local mib=$1
  shift
  outputs=$((outputs + 1))  # the state remembers what it wrote to
  sluice dedup --stats json --memory "${mib}MiB" "$@" input >"out.$outputs" 2>err
  echo "--memory ${mib}MiB $*: $(stat_of '.memory_bytes / 1048576') MiB at the peak"
  stat_of ".memory_bytes <= $mib * 1048576 and .memory_bytes >= 0.5 * $mib * 1048576" |
    grep -qx true
}

@test "the whole process keeps within its budget, whatever the records and the filter" {
  grep -q __asan_init "$SLUICE" && skip "the sanitizer takes memory of its own"
  lines_of "$(count 1M 10M)" >input
  within_budget 16
  within_budget "$(count 40 64)"
  within_budget 32 --fpr 0.1
  within_budget 24 --fpr 1e-4 --state s --checkpoint-every 300k
  # And again, from the state: loading needs no second copy.
  within_budget 24 --fpr 1e-4 --state s
}

@test "the budget holds for CSV and JSON, too" {
  grep -q __asan_init "$SLUICE" && skip "the sanitizer takes memory of its own"
  (echo id,x && lines_of 200k) >input
  within_budget 16 --csv --key 1
  sluice generate clicks --records 300k --seed 3 >input 2>log
  within_budget 16 --json --key /user,/ad
}

@test "what fits is remembered for sure, and what no longer fits is forgotten" {
  # 14 MiB leave 1 MiB for a filter, some 230,000 keys of the most recent past.
  lines_of 100k >once
  sluice generate lines --records 400k --duplicates 0 --seed 7 >others 2>log
  cat once once others once >input
  sluice dedup --stats json --memory 14MiB input >out 2>err
  stat_of '.window.kind == "count" and .filter.name == "cohort" and .window.growths == 0' |
    grep -qx true
  # Twice in a row is known; with 400,000 others in between nearly nothing is.
  distinct=$(sort -u once | wc -l)
  passed_again=$(stat_of ".distinct - $distinct - 400000")
  echo "passed again: $passed_again of $distinct"
  [ "$passed_again" -ge "$((distinct * 99 / 100))" ]
  [ "$passed_again" -le "$distinct" ]
}

@test "which way of forgetting was chosen is said, and why" {
  lines_of 1000 >input
  run -0 --separate-stderr sluice dedup --memory 64MiB input
  says "cohort" "because" "the last" "on average"
  run -0 --separate-stderr sluice dedup --memory 64MiB --fpr 20% input
  says "reservoir" "because" "at random"
  sluice dedup --stats json --memory 64MiB --fpr 20% input >out 2>err
  stat_of '.plan.memory == 67108864 and .plan.random_keys > .plan.window_keys and
           .filter.name == "reservoir" and (.plan.reason | contains("at random"))' | grep -qx true
}

@test "budgets that cannot be kept, and flags that say the same, are refused" {
  touch input
  refused 2 dedup input --memory 4MiB
  says "--memory 4MiB is too little" "takes 13 MiB" "14MiB or more"
  refused 2 dedup input --memory 12.5MB
  says "--memory 12.5MB is too little"
  refused 2 dedup input --memory 100TiB
  says "--memory" "or less"
  refused 2 dedup input --memory 64M
  says "--memory"
  refused 2 dedup input --memory 64MiB --filter exact
  says "--memory" "--filter"
  refused 2 dedup input --memory 64MiB --window 10m
  says "--memory" "--rate"
  # What cannot be had is refused with what can.
  refused 2 dedup input --memory 16MiB --window 1M --fpr 1e-6
  says "--memory 17.5MiB" "or --fpr" "or --window"
  refused 2 dedup input --memory 6MiB --window 1M
  says "--memory 6MiB (the process itself takes 13 MiB)" "can be met: --memory 1"
}

@test "a budget for a window, or for so many keys: the least error that fits" {
  lines_of 100k >input
  sluice dedup --stats json --memory 32MiB --window 1M input >out 2>err
  stat_of '.filter.name == "cohort" and .window.size == 1000000 and .plan.memory == 33554432 and
           .filter.target_fpr < 1e-9 and (.plan.reason | contains("lowest error"))' | grep -qx true
  sluice dedup --stats json --memory 32MiB --expect 1M input >out 2>err
  stat_of '.filter.name == "bloom" and .filter.capacity == 1000000 and
           .filter.target_fpr < 1e-9' | grep -qx true
  sluice dedup --stats json --memory 32MiB --window 1M --fpr 1e-6 input >out 2>err
  stat_of '.filter.name == "cohort" and .filter.target_fpr == 1e-6' | grep -qx true
}

@test "a time window has room for more keys before an error that nobody asked for" {
  seq 1 60000 >input
  for flags in "--expect 1k" "--rate 2/s"; do
    # shellcheck disable=SC2086  # a flag and its value
    sluice dedup --stats json --memory 14MiB --window 10m --arrival-time $flags input >out 2>err
    cat err
    stat_of '.filter.target_fpr == 1e-6 and .window.growths > 0 and .window.forgotten_early == 0 and
             .filter.over_target == false and .memory_bytes <= 13 * 1048576' | grep -qx true
    run -1 grep warning err
  done
}

@test "the first line names the error that was planned, whatever was given" {
  lines_of 1000 >input
  for flags in "--expect 1M" "--window 100k" "--window 10m --rate 100/s --arrival-time" "" "--fpr 1e-4" \
    "--expect 1M --fpr 1e-3"; do
    # shellcheck disable=SC2086  # flags and their values
    sluice dedup --memory 16MiB $flags input >out 2>err
    named=$(sed -nE '1s/^sluice dedup: memory: planned for false positives of ([^:]*): .*/\1/p' err)
    echo "$flags: $named"
    [ -n "$named" ]
    grep -qF "(target $named)" err
  done
}

@test "an error above one in a hundred is taken only if --fpr says so" {
  lines_of 1000 >input
  for flags in "--expect 10M" "--window 3500k" "--window 10m --rate 10k/s --arrival-time"; do
    # shellcheck disable=SC2086  # flags and their values
    refused 2 dedup --memory 20MiB $flags input
    says "more than 1 % of what is new would be lost" "or --fpr "
    # shellcheck disable=SC2086
    refused 1 plan --memory 20MiB ${flags/--arrival-time/}
    says "more than 1 % of what is new would be lost" "or --fpr "
  done
}

# advised FLAG: what the last refusal says to give.
advised() {
  sed -nE "s/.*(can be met: |or )$1 ([^ ,]+).*/\2/p" <<<"$stderr"
}

@test "the sizes, errors, windows and keys that a refusal advises are accepted as they are printed" {
  lines_of 1000 >input
  for flags in "--memory 20MiB --expect 10M" "--memory 20MiB --window 3500k" \
    "--memory 20MiB --window 10m --rate 10k/s" "--memory 14MiB --expect 10M --fpr 1e-6" \
    "--memory 6MiB --window 123457" "--memory 12582931 --expect 77777 --fpr 1e-9" \
    "--memory 14MiB --window 10m --expect 456789 --fpr 1e-5"; do
    arrival=()
    if [[ $flags == *--window\ 10m* ]]; then arrival=(--arrival-time); fi
    # shellcheck disable=SC2086  # flags and their values
    refused 2 dedup $flags "${arrival[@]}" input
    echo "$stderr"
    tried=0
    for flag in --memory --fpr --window --expect; do
      value=$(advised "$flag")
      [ -n "$value" ] || continue
      rest=$(sed -E "s/$flag [^ ]+//" <<<"$flags")
      echo "$rest $flag $value"
      # shellcheck disable=SC2086
      sluice dedup --stats none $rest $flag "$value" "${arrival[@]}" input >out
      tried=$((tried + 1))
    done
    [ "$tried" -ge 1 ]
  done
  # The least of all.
  for flags in "--memory 14MiB --audit 1/16" "--memory 15MiB --audit 1/16 --audit-memory 3MiB" \
    "--memory 1MiB" "--memory 64MiB --audit 1/16 --audit-memory 1kB" "--memory 33TiB"; do
    # shellcheck disable=SC2086
    refused 2 dedup $flags input
    echo "$stderr"
    flag=--memory
    if [[ $flags == *1kB ]]; then flag=--audit-memory; fi
    value=$(sed -nE 's/.*: give ([^ ]+) or (more|less).*/\1/p' <<<"$stderr")
    # A table of that size is not made.
    if [[ $flags == *33TiB ]]; then
      [ "$value" = 32TiB ]
      continue
    fi
    # shellcheck disable=SC2086,SC2046  # flags and their values
    sluice dedup --stats none $(sed -E "s/$flag [^ ]+/$flag $value/" <<<"$flags") input >out
  done
}

@test "a state made for a window under a budget serves the same flags" {
  lines_of 1000 >input
  for flags in "--window 100k" "--window 10m --rate 1k/s --arrival-time" "--expect 10k"; do
    rm -f s*
    # shellcheck disable=SC2086  # a flag and its value
    sluice dedup --stats none --memory 16MiB $flags --state s input >out
    # shellcheck disable=SC2086
    sluice dedup --stats none --memory 16MiB $flags --state s input >again
    [ ! -s again ]
  done
}

@test "a state made under a budget serves the same budget, and no other" {
  lines_of 1000 >input
  sluice dedup --stats none --memory 16MiB --state s input >out
  sluice dedup --stats none --memory 16MiB --state s input >again
  [ ! -s again ]
  # Of these, 32, 17 and 24 MiB would leave the filter as much, if the room for compressed files were so large.
  for memory in 33MiB 32MiB 17MiB 18MiB 20MiB 24MiB; do
    refused 2 dedup input --memory $memory --state s
    says "--state" "the last"
  done
}
