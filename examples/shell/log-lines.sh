#!/usr/bin/env bash
# Repeated lines of a log, as a drop-in for awk '!seen[$0]++'.
set -euo pipefail

sluice generate lines --records 200k --duplicates 30% --output events.log
sluice dedup --expect 200k --seed 1 --stats none events.log >once.log
wc -l events.log once.log | awk '$2 != "total" { print $2 ": " $1 " lines" }'

# Exactly, at the price of memory that grows with the keys: the same bytes as awk.
sluice dedup --filter exact --stats none events.log | cmp - <(awk '!seen[$0]++' events.log) &&
  echo "exact equals awk"
