#!/usr/bin/env bash
# docs/models.md holds the list that `sluice model` prints, to the last word.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"

document=$SOURCE/docs/models.md
same "docs/models.md is not what sluice model prints" "$("$SLUICE" model)" \
  "$(fenced text 1 "$document")"
[[ $("$SLUICE" model | grep -cE '^[a-z-]+: ') -gt 20 ]] || complain "sluice model lists too few"
# Each is described alike by itself, and in the list for programs.
names=$("$SLUICE" model | sed -nE 's/^([a-z-]+): .*/\1/p')
for name in $names; do
  "$SLUICE" model "$name" --help >"$scratch/one"
  [[ $(head -n 1 "$scratch/one") == "$name: "* ]] || complain "sluice model $name --help: $(head -n 1 "$scratch/one")"
done
same "sluice model --json has other models" "$names" \
  "$("$SLUICE" model --json | sed -E 's/^\{"name":"([^"]*)".*/\1/')"
finish
