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
