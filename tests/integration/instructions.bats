#!/usr/bin/env bats
# What may cost only so many instructions.
load helper
load ../support/instructions

@test "an audit of 1/1024 costs at most 3 % more instructions per key" {
  need_instructions "$SLUICE"
  # Short lines are the cheapest records, and the audit's share is largest there.
  lines_of 40k | cut -c 5-16 >input
  awk '{ print $0, 1700000000 + int(NR / 50) }' input >timed
  check() {
    local before after
    before=$(instructions_in 'sluice::Dedup::run*' "$SLUICE" dedup --threads 1 --seed 1 --stats none "$@")
    after=$(instructions_in 'sluice::Dedup::run*' "$SLUICE" dedup --threads 1 --seed 1 --stats none \
      --audit 1/1024 "$@")
    echo "$*:"
    at_most_more 3 "$before" "$after"
  }
  check --expect 1M input
  check --window 50k input
  check --key 1 --window 10m --event-time 2 --time-format s timed
}

# 16 M instructions are some 2 ms. A server plans on its only thread, whatever it is asked; these are
# the requests that took the most of some ten thousand, and those that once took seconds.
@test "a plan costs at most 16 M instructions, whatever is asked for" {
  need_instructions "$SLUICE"
  local most=16000000 flags count
  for flags in "" "--window 10m --rate 1/s" "--window 1M --slack 1e-300" "--window 1M --npws 1e-300" \
    "--window 1M --memory 10MiB" "--window 1M --memory 3MiB" "--memory 64MiB" \
    "--expect 1M --fpr 1e-9 --memory 3MiB" "--window 10k --fpr 1e-6 --slack 1e-5 --lines 2" \
    "--window 1013 --slack 0.187 --memory 100MB" "--window 97 --fnr 0.167 --memory 5149858" \
    "--window 62 --fpr 0.00121 --npws 0.0149" "--window 10 --fpr 3e-7 --slack 0.0912 --memory 6562337" \
    "--window 6226s --rate 2179/s --fnr 0.27 --slack 0.0643 --memory 7700793" \
    "--window 1000G --fpr 1e-300 --fnr 1e-300 --slack 1e-300 --npws 1e-300 --lines 1 --memory 3MiB"; do
    # shellcheck disable=SC2086  # flags and their values
    count=$(instructions_in 'sluice::plan(*' "$SLUICE" plan $flags)
    echo "plan $flags: $count instructions"
    [ "$count" -le $most ]
  done
}

# The models of columns and lines take millions of instructions: they are for statistics, not for
# every record, which would be three million.
@test "a small window of columns or lines evaluates its model now and then, not for each record" {
  need_instructions "$SLUICE"
  local layout count
  seq 3000 >input
  for layout in column line; do
    count=$(instructions_in 'sluice::Dedup::run*' "$SLUICE" dedup --threads 1 --seed 1 --stats none \
      --window 200 --filter apbbf,layout=$layout --fpr 1% input)
    echo "$layout: $count instructions for 3,000 records"
    [ "$count" -le 1000000000 ]
  done
}
