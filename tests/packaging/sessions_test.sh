#!/usr/bin/env bash
# The shell sessions of the README and of docs/ do what they show: each line after `$ ` is run, what
# follows is what it prints. A file that a session only shows (`$ cat FILE`) is made first.
# Figures of one machine (times, rates, memory) are not compared. With arguments (DOCUMENT LEAST), only
# that document.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"

# stable: without times, rates and memory.
stable() {
  sed -E 's/ in [0-9.]+(ms|s|us) \([^)]*\)/ in TIME/; /^  memory /d'
}

# planned: the lines of a plan, with one filter per line and single blanks.
planned() {
  sed -E 's/^not feasible: /not feasible:\n/; s/; /\n/g; s/ +/ /g'
}

# run DOCUMENT COMMAND SHOWN
ran=0
run() {
  [[ -n $2 ]] || return 0
  ran=$((ran + 1))
  if [[ $2 == 'cat '* && ! -e ${2#cat } ]]; then echo "$3" >"${2#cat }"; fi
  # A filter that is new in the catalogue is a row more in every plan: what is shown must be there.
  if [[ $2 == 'sluice plan '* ]]; then
    same "$1: $2" '' "$(planned <<<"$3" | grep -vxFf <(bash -c "$2" 2>&1 | planned))"
    return
  fi
  same "$1: $2" "$(stable <<<"$3")" "$(bash -c "$2" 2>&1 | stable)"
}

# sessions DOCUMENT LEAST: runs all its sessions, in a folder of its own; there are so many commands at
# least.
sessions() {
  local document=$1 number=1 command='' shown='' line
  ran=0
  mkdir "$scratch/${document//\//-}"
  cd "$scratch/${document//\//-}"
  while fenced console "$number" "$SOURCE/$document" >session && [[ -s session ]]; do
    number=$((number + 1))
    while IFS= read -r line; do
      if [[ $line == '$ '* ]]; then
        run "$document" "$command" "$shown"
        command=${line#'$ '} shown=''
      else
        shown+=${shown:+$'\n'}$line
      fi
    done <session
    run "$document" "$command" "$shown"
    command='' shown=''
  done
  ((ran >= $2)) || complain "$document has only $ran commands in its sessions"
}

if [[ $# -gt 0 ]]; then
  sessions "$@"
  finish
  exit
fi
sessions README.md 3
sessions docs/cli.md 3
sessions docs/tasks/logs.md 8
sessions docs/tasks/webhooks.md 4
sessions docs/tasks/csv-exports.md 10
sessions docs/tasks/endless-stream.md 3
sessions docs/cookbook.md 8
sessions docs/windows.md 9
sessions docs/resuming.md 4
sessions docs/merging.md 12
sessions docs/models.md 8
sessions docs/planning.md 4
sessions docs/compare.md 2
sessions docs/count.md 3
sessions docs/inference.md 5
sessions docs/audit.md 2
finish
