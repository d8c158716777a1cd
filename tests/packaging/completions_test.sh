#!/usr/bin/env bash
# Each shell loads its completions and completes for real.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"
completions=$SOURCE/apps/cli/completions
cd "$scratch"
touch input.ndjson
filters=$("$SLUICE" filters | sed -nE 's/^([a-z_-]+): .*/\1/p')
[[ -n $filters ]] || complain "sluice filters lists no filter"

# expect SHELL LINE WORD...: each word is among what the shell offers at the end of the line.
expect() {
  local shell=$1 line=$2 offered word
  shift 2
  offered=$("offer_$shell" "$line")
  for word in "$@"; do
    grep -qE -- "(^|[[:space:]])$word([[:space:]]|\$)" <<<"$offered" ||
      complain "$shell does not complete '$line' with $word, but with: $offered"
  done
}

offer_bash() {
  bash --norc -c '
    . "$1"
    read -ra COMP_WORDS <<<"$2"
    [[ $2 == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _sluice
    printf "%s\n" "${COMPREPLY[@]}"' bash "$completions/sluice.bash" "$1"
}

offer_fish() {
  # shellcheck disable=SC2016  # fish expands it
  HOME=$scratch fish --no-config -c '
    source $argv[1]
    complete -C $argv[2]' "$completions/sluice.fish" "$1"
}

offer_zsh() {
  zsh -f "$SOURCE/tests/packaging/zsh_offer.zsh" "$completions" "$1"
}

for shell in bash fish zsh; do
  expect $shell 'sluice ' dedup generate filters inspect merge delta apply plan model compare count cluster repro
  expect $shell 'sluice dedup --fo' --forget
  expect $shell 'sluice merge --' --output --json
  expect $shell 'sluice dedup --un' --untrusted-keys
  expect $shell 'sluice dedup --st' --state --state-previous --stats --strict
  expect $shell 'sluice dedup --la' --late --late-output
  expect $shell 'sluice dedup --window ' 1M 10m day
  expect $shell 'sluice dedup --late ' pass drop mark
  expect $shell 'sluice dedup --when-unreachable ' wait duplicate distinct
  expect $shell 'sluice cluster ' create status drop
  expect $shell 'sluice cluster create --s' --sites --slack
  expect $shell 'sluice cluster drop --' --yes --json
  expect $shell 'sluice generate ' clicks lines
  expect $shell 'sluice compare --st' --stream
  expect $shell 'sluice count --t' --top --time-format
  expect $shell 'sluice compare --stream ' uniform zipf power bursty
  expect $shell 'sluice compare --plot x.svg --filter ' bloom cohort
  expect $shell 'sluice plan --l' --lines
  expect $shell 'sluice plan --window ' 1M 10m day
  expect $shell 'sluice repro ' koloniari shtul dutta guo dautrich
  expect $shell 'sluice repro --o' --only --out
  expect $shell 'sluice model ' apbf lower-bound
  expect $shell 'sluice model apbf --' --k --l --json
  expect $shell 'sluice generate clicks --' --skew --malformed
  # shellcheck disable=SC2086  # one word per filter
  expect $shell 'sluice dedup --filter ' $filters
done
for shell in fish zsh; do
  expect $shell 'sluice inspect inp' input.ndjson
  expect $shell 'sluice delta inp' input.ndjson
done
finish
