#!/usr/bin/env bash
# The shell session of the README does what it shows: each line after `$ ` is run, what follows is
# what it prints. Figures of one machine (times, rates, memory) are not compared.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"
fenced console 1 "$SOURCE/README.md" >"$scratch/session"
cd "$scratch"

# stable: without times, rates and memory.
stable() {
  sed -E 's/ in [0-9.]+(ms|s|us) \([^)]*\)/ in TIME/; /^  memory /d'
}

ran=0
run() {
  [[ -n $1 ]] || return 0
  ran=$((ran + 1))
  same "README: $1" "$(stable <<<"$2")" "$(bash -c "$1" 2>&1 | stable)"
}
command='' shown=''
while IFS= read -r line; do
  if [[ $line == '$ '* ]]; then
    run "$command" "$shown"
    command=${line#'$ '} shown=''
  else
    shown+=${shown:+$'\n'}$line
  fi
done <session
run "$command" "$shown"
((ran >= 3)) || complain "the README has no session, or it was not found"
finish
