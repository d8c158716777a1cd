#!/usr/bin/env bash
# Orders as CSV, day after day: the state file remembers what went through before.
set -euo pipefail

printf 'order_id,item\n1001,lamp\n1002,"chair, oak"\n1001,lamp\n' >monday.csv
printf 'order_id,item\n1002,"chair, oak"\n1003,desk\n' >tuesday.csv

for day in monday tuesday; do
  echo "$day:"
  sluice dedup --csv --key order_id --expect 10k --state orders.sluice --stats none $day.csv
done
sluice inspect orders.sluice | grep 'keys held'
