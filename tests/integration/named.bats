#!/usr/bin/env bats
# --filter: a filter that is named is made for the error and the keys that were asked for.
load helper

@test "an error within --filter is the target of the run" {
  seq 1 20000 >input
  for window in "--window 4000" "--window 10m --arrival-time --expect 4000"; do
    # shellcheck disable=SC2086  # flags and their values
    sluice dedup $window --filter cohort,fpr=0.02 --stats json input >out 2>within
    # shellcheck disable=SC2086
    sluice dedup $window --filter cohort --fpr 0.02 --stats json input >out 2>beside
    cat within
    jq -c '.filter.parameters, .filter.target_fpr, .filter.bytes, .window' <(tail -n 1 within) >first
    jq -c '.filter.parameters, .filter.target_fpr, .filter.bytes, .window' <(tail -n 1 beside) >second
    diff first second
    jq -e '.filter.target_fpr > 0.015 and .filter.target_fpr <= 0.02 and .filter.over_target == false' \
      <(tail -n 1 within)
    run -1 grep warning within
  done
}

@test "a state knows the error within --filter" {
  lines_of 1000 >input
  for flags in "--window 4000 --filter cohort" "--expect 5k --filter bloom"; do
    rm -f s*
    # shellcheck disable=SC2086  # flags and their values
    sluice dedup --stats none --state s $flags,fpr=2% input >out
    # As it was given, in the other way, or left out.
    for again in "$flags,fpr=0.02" "$flags --fpr 2%" "$flags"; do
      echo "$again"
      # shellcheck disable=SC2086
      sluice dedup --stats none --state s $again --abandon input >out
      [ ! -s out ]
    done
    # shellcheck disable=SC2086
    refused 2 dedup --state s $flags --fpr 1% --abandon input
    says "--state 's' was made with filter"
  done
}

# At the planned rate, arrivals of a Poisson process: in each slice of a window sometimes many more than
# on average. 30 windows.
@test "a filter that is named has room for chance, as if the planner had chosen it" {
  awk 'BEGIN {
    srand(7)
    for (t = 1700000000; i < 60000;) {
      t -= log(1 - rand()) / 200
      printf "%d %.6f\n", ++i, t
    }
  }' >input
  for filter in apbf apbbf apbbf,layout=line apbbf,layout=column cohort; do
    sluice dedup --key 1 --window 10s --event-time 2 --rate 200/s --fpr 0.01 --filter "$filter" \
      --stats json input >out 2>err
    echo "$filter: $(stat_of '.window.growths, .filter.capacity' | tr '\n' ' ')"
    stat_of '.window.growths == 0 and .filter.over_target == false' | grep -qx true
  done
}

@test "a named set is as large as a chosen one; sizes that are given are taken as they are" {
  lines_of 100 >input
  sluice dedup --expect 100 --fpr 1% --stats json input >out 2>err
  chosen=$(stat_of '.filter.bytes, .filter.parameters, .filter.target_fpr')
  sluice dedup --expect 100 --fpr 1% --filter bloom --stats json input >out 2>err
  [ "$(stat_of '.filter.bytes, .filter.parameters, .filter.target_fpr')" = "$chosen" ]
  sluice dedup --expect 100 --fpr 1% --filter bloom,bytes=64 --stats json input >out 2>err
  [ "$(stat_of .filter.parameters.bytes)" = 64 ]
  # With few records: stages that follow the first one are as large as the stream needs.
  sluice dedup --window 10s --arrival-time --rate 200/s --filter apbf,keys=100 --stats json <(head -n 2 input) \
    >out 2>err
  [ "$(stat_of .filter.parameters.keys)" = 100 ]
}
