#!/usr/bin/env bash
# Every script of examples/shell runs, and prints what stands beside it.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$scratch"
ran=0
for script in "$SOURCE"/examples/shell/*.sh; do
  ran=$((ran + 1))
  mkdir "$ran"
  output=$(cd "$ran" && bash "$script" 2>&1) || complain "$script fails"
  same "$script" "$(cat "${script%.sh}.txt")" "$output"
done
((ran >= 3)) || complain "there are too few examples"
finish
