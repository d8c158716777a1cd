#!/usr/bin/env bash
# Clicks as JSON: each user and ad once. What is held back goes to a file of its own, so that nothing
# is gone.
set -euo pipefail

sluice generate clicks --records 100k --seed 7 --output clicks.ndjson
sluice dedup --json --key /user,/ad --expect 100k --seed 1 --stats none \
  --duplicates again.ndjson clicks.ndjson >once.ndjson
echo "let through $(wc -l <once.ndjson), held back $(wc -l <again.ndjson)"

# The numbers, for scripts: the last line of standard error is one JSON object.
sluice dedup --json --key /user,/ad --expect 100k --seed 1 --stats json clicks.ndjson \
  2>&1 >/dev/null | tail -n 1 | grep -oE '"(records|distinct|duplicates|unkeyed)":[0-9]+'
