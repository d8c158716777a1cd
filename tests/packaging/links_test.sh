#!/usr/bin/env bash
# Links between documents lead somewhere, and none leads out of the tree.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$SOURCE"

seen=0
while IFS=: read -r document target; do
  seen=$((seen + 1))
  path=$(dirname "$document")/${target%%#*}
  [[ $target == '#'* ]] && path=$document
  if [[ ! -e $path || $(realpath "$path") != "$(realpath .)"/* ]]; then
    complain "$document links to $target, which is not there"
  fi
  # An anchor is a heading in lower case, blanks as hyphens, without punctuation.
  if [[ $target == *'#'* ]] && ! sed -n 's/^#\+ //p' "$path" | tr '[:upper:]' '[:lower:]' |
    sed 's/[^a-z0-9 _-]//g; s/ /-/g' | grep -qxF -- "${target#*#}"; then
    complain "$document links to $target, and there is no such heading"
  fi
done < <(find . -name build -prune -o -name out -prune -o -name '*.md' -print0 |
  xargs -0 grep -HoE '\]\([^)]+\)' | sed -E 's/\]\((.*)\)$/\1/' | grep -vE ':https?://')
((seen > 10)) || complain "too few links were found: $seen"
finish
