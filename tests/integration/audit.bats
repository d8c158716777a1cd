#!/usr/bin/env bats
# --audit: the filter's errors, measured.
load helper

@test "an audit tells the errors of a filter, as text and as JSON" {
  lines_of 100k >input
  sluice dedup --seed 3 --audit 1/4 --filter bloom,keys=20000,fpr=0.02 --stats json input >out 2>err
  stat_of '.audit | [.sample, .fpr, .fpr_low, .fpr_high, .fnr_low, .fnr_high, .ghost_fpr,
    .ghost_probes] | all(type == "number")' | grep -qx true
  stat_of '.audit | .fpr_low < .fpr and .fpr < .fpr_high and .ghost_probes >= 64' | grep -qx true
  # No false negative: below the upper end, not 0.
  stat_of '.audit | .fnr == null and .fnr_low == 0 and .fnr_high > 0 and .fnr_high < 0.01' |
    grep -qx true
  sluice dedup --seed 3 --audit 1/4 --filter bloom,keys=20000,fpr=0.02 input >out 2>err
  grep -qE '^  audit       1/[0-9]+ of the keys.*: false positives 0\.[0-9]+ \(.* to .*\), false negatives < .*; ghosts 0\.' err
}

@test "what an audit finds is what the output shows" {
  lines_of 10k >input
  sluice dedup --seed 3 --audit 1/1 --filter bloom,keys=5000,fpr=0.05 --stats json input >out 2>err
  # Every key that is not in the output was lost with every record of it.
  awk 'NR == FNR { kept[$0]; next } !($0 in kept)' out input >lost
  stat_of '.audit | [.sample, (.fpr * .distinct + 0.5 | floor), .distinct] | @tsv' >found
  printf '%s\t%s\t%s\n' "$(stat_of .audit.sample)" "$(wc -l <lost)" "$(($(wc -l <out) + $(wc -l <lost)))" |
    awk '$1 == 1 { print; exit } { exit 1 }' | cmp - found
}

@test "the output is the same with an audit and without" {
  lines_of 50k >input
  for filter in bloom,keys=30000 growing; do
    sluice dedup --seed 3 --stats none --filter "$filter" input >plain
    sluice dedup --seed 3 --stats none --filter "$filter" --audit 1/16 input >audited
    cmp plain audited
  done
}

@test "a window is audited by its own meaning" {
  lines_of 100k >input
  sluice dedup --seed 3 --audit 1/2 --window 5k --stats json input >out 2>err
  stat_of '.audit | .fnr == null and .fpr == null and .duplicates > 100 and .undecided > 0' |
    grep -qx true
  for second in 0 5 8 17 18 19; do echo "{\"k\":1,\"t\":$second}"; done >events
  sluice dedup --json --key /k --event-time /t --window 10s --audit 1/1 --stats json events >out 2>err
  stat_of '.audit | "\(.distinct) \(.duplicates) \(.undecided)"' | grep -qx '2 4 0'
}

@test "when its memory is full the sample is halved, and the statistics say so" {
  lines_of 100k >input
  sluice dedup --seed 3 --audit 1/1 --stats json input >out 2>err
  stat_of '.audit | .sample > 1 and .doublings > 0 and .bytes <= 524288' | grep -qx true
  sluice dedup --seed 3 --audit 1/1 input >out 2>err
  grep -qE '^  audit       1/[0-9]+ of the keys \(1/1 at first, halved' err
}

@test "an audit begins with the run: of what a state knows it says nothing" {
  lines_of 2k >input
  sluice dedup --audit 1/1 --state s --stats json input >out 2>err
  stat_of '.audit.undecided == 0 and .audit.distinct > 1000' | grep -qx true
  sluice dedup --audit 1/1 --state s --stats json input >out 2>err
  stat_of '.audit | .distinct == 0 and .undecided == 2000 and .fpr == null and .fpr_high == 1' |
    grep -qx true
}

@test "with --memory the audit has a part of it" {
  refused 2 dedup --memory 9MiB --audit 1/64 /dev/null
  says --memory --audit '9.3 MiB'
  lines_of 1k >input
  sluice dedup --memory 10MiB --audit 1/64 --stats json input >out 2>err
  stat_of '.plan.memory == 10485760' | grep -qx true
}

@test "a share that is none is refused" {
  for share in 1/0 2/3 1/ 1 0.5 x '1/ 8' 1/-8 1/1k 1/8x 1/1099511627777 1/99999999999999999999; do
    refused 2 dedup --audit "$share" /dev/null
    says "--audit '$share'" 1/1024
  done
}
