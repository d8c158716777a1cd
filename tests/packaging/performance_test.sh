#!/usr/bin/env bash
# What README says of speed is what docs/performance.md says, word for word, and that page is as the
# benchmark writes it: the table of bars has its columns, and each row's word fits its numbers.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"

page=$SOURCE/docs/performance.md
claimed=$(sed -n '/^<!-- performance/,/^<!-- \/performance -->/p' "$SOURCE/README.md" | sed '1d;$d')
[[ -n $claimed ]] || complain "README.md says nothing of speed"
same "README.md and docs/performance.md differ: run ./dev bench" "$claimed" \
  "$(sed -n '/^## In short/,/^## The machine/p' "$page" | grep '^[- ] ')"

columns=$(sed -nE '/bar_columns\(\) \{/,/\}/s/.*return \{(.*)\};/\1/p' "$SOURCE/bench/report.cpp" |
  sed 's/"//g; s/, / | /g')
[[ -n $columns ]] || complain "bench/report.cpp does not say what columns the bars have"
grep -qxF "| $columns |" "$page" || complain "docs/performance.md has not the columns '$columns'"

awk -F ' *[|] *' '
  $4 ~ /^(≤|≥) / {
    ++bars
    split($4, bar, " ")
    # Near the bar, what is printed cannot tell.
    if ($3 > bar[2] * 0.99 && $3 < bar[2] * 1.01) next
    below = $3 < bar[2] + 0
    holds = bar[1] == "≤" ? below : !below
    if (holds != ($5 == "holds")) { print; wrong = 1 }
  }
  END { exit wrong || bars < 30 }' "$page" || complain "docs/performance.md: bars and words differ"
finish
