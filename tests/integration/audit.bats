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
  sluice dedup --seed 3 --audit 1/1 --audit-memory 4MiB --filter bloom,keys=5000,fpr=0.05 --stats json input >out 2>err
  # Every key that is not in the output was lost, once.
  awk 'NR == FNR { kept[$0]; next } !($0 in kept)' out input | sort -u >lost
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
  sluice dedup --audit 1/1 --state s --stats json input >again 2>err
  stat_of '.audit | .distinct == 0 and .undecided == 2000 and .fpr == null and .fpr_high == 1' |
    grep -qx true
}

@test "the text says that a loaded set has no known rate of false positives" {
  lines_of 2k >input
  sluice dedup --audit 1/1 --state s --stats none input >/dev/null
  sluice dedup --audit 1/1 --state s input >out 2>err
  grep -q 'false positives unknown (keys from before this run), false negatives unknown; ghosts < ' err
  # Keys of this run are known when they come again, and a window knows all once it has passed.
  lines_of 4k 2 >other
  sluice dedup --audit 1/1 --state s --stats json other >out 2>err
  stat_of '.audit | .fpr_high == 1 and .fnr == null and .duplicates > 100 and .knows_all == false' |
    grep -qx true
  sluice dedup --window 500 --audit 1/1 --state w --stats none input >/dev/null
  sluice dedup --window 500 --audit 1/1 --state w --stats json other >out 2>err
  stat_of '.audit | .distinct > 1000 and .undecided > 400 and .knows_all' | grep -qx true
}

@test "keys that are taken back are known to be gone" {
  printf '%s\n' a b c >input
  printf '%s\n' a b >back
  sluice dedup --filter exact --state s --stats none input >/dev/null
  sluice dedup --filter exact --state s --stats json --forget back --audit 1/1 input >out 2>err
  holds out 'a\nb\n'
  stat_of '.audit | "\(.distinct) \(.duplicates) \(.undecided) \(.fpr)"' | grep -qx '2 0 1 null'
}

@test "ghosts reach as far as is asked for" {
  lines_of 20k >input
  sluice dedup --seed 3 --audit 1/64 --expect 20k --fpr 1e-4 --stats json input >out 2>err
  stat_of '.audit | .ghost_probes >= 64 and .ghost_probes < 1000' | grep -qx true
  sluice dedup --seed 3 --audit 1/64 --audit-ghosts 1M --expect 20k --fpr 1e-4 --stats json input \
    >out 2>err
  stat_of '.audit | .ghost_probes >= 1000000 and .ghost_probes_now >= 1000000' | grep -qx true
  # About what the filter predicts at the end: within five standard errors. Most of the run had
  # fewer keys.
  stat_of '.filter.predicted_fpr as $p | .audit |
    (.ghost_fpr_now - $p) | fabs < 5 * ($p / 1e6 | sqrt)' | grep -qx true
  stat_of '.audit | (.ghost_fpr // 0) < .ghost_fpr_now' | grep -qx true
  sluice dedup --seed 3 --audit 1/64 --audit-ghosts 1M --expect 20k --fpr 1e-4 input >out 2>err
  grep -qE '; ghosts .*, now [0-9.e-]+ \(' err
}

@test "the audit's memory is what is asked for" {
  lines_of 50k >input
  sluice dedup --seed 3 --audit 1/1 --audit-memory 64KiB --stats json input >out 2>err
  stat_of '.audit | .bytes * 2 <= 65536 and .most_bytes == 65536 and .doublings > 3' | grep -qx true
  sluice dedup --seed 3 --audit 1/1 --audit-memory 16MiB --stats json input >out 2>err
  stat_of '.audit | .doublings == 0 and .keys > 30000' | grep -qx true
  refused 2 dedup --audit-memory 1MiB /dev/null
  says "--audit-memory needs --audit"
  refused 2 dedup --audit-ghosts 1M /dev/null
  says "--audit-ghosts needs --audit"
  refused 2 dedup --audit 1/8 --audit-memory 1KiB /dev/null
  says "--audit-memory 1KiB" "4KiB"
  refused 2 dedup --audit 1/8 --audit-ghosts 2G /dev/null
  says "--audit-ghosts 2G" "1G"
  # It is a part of --memory.
  refused 2 dedup --memory 16MiB --audit 1/8 --audit-memory 4MiB /dev/null
  says "--memory 16MiB leaves no room for --audit-memory" "18MiB"
  sluice dedup --memory 32MiB --audit 1/8 --stats json input >out 2>err
  stat_of .filter.bytes >small
  sluice dedup --memory 32MiB --audit 1/8 --audit-memory 8MiB --stats json input >out 2>err
  [ "$(stat_of .filter.bytes)" -lt "$(($(cat small) - 6000000))" ]
}

@test "with --memory the audit has a part of it" {
  refused 2 dedup --memory 14MiB --audit 1/64 /dev/null
  says --memory --audit 14.5MiB
  lines_of 1k >input
  sluice dedup --memory 15MiB --audit 1/64 --stats json input >out 2>err
  stat_of '.plan.memory == 15728640' | grep -qx true
}

# Few keys have most of the duplicates here, and a sample has few of those keys.
@test "the interval of false negatives holds the truth of a skewed stream" {
  awk 'BEGIN { srand(7); for (i = 0; i < 60000; i++) print int(exp(rand() * log(20000))) }' >input
  local seed held=0
  for seed in 1 2 3 4 5 6 7 8 9 10; do
    sluice dedup --seed $seed --filter reservoir,bytes=4096,fpr=0.02 --audit 1/1 \
      --audit-memory 16MiB --stats json input >out 2>err
    stat_of .audit.fnr >truth
    sluice dedup --seed $seed --filter reservoir,bytes=4096,fpr=0.02 --audit 1/16 --stats json \
      input >out 2>err
    stat_of '.audit | .fnr_high - .fnr_low < 0.05' | grep -qx true
    if stat_of ".audit | .fnr_low <= $(cat truth) and $(cat truth) <= .fnr_high" | grep -qx true; then
      held=$((held + 1))
    fi
  done
  # Fewer are once in 10,000.
  [ $held -ge 7 ]
}

@test "a share that is none is refused" {
  for share in 1/0 2/3 1/ 1 0.3 30% 1.5 150% 0.0 -.1 .5k .001k 1e x '1/ 8' 1/-8 1/1.5 1/1m 1/8x 1/1099511627777 1/99999999999999999999; do
    refused 2 dedup --audit "$share" /dev/null
    says "--audit '$share'" 1/1024
    [[ $stderr != *30%,* && $stderr != *"or 30%"* ]]
  done
}
