#!/usr/bin/env bash
# docs/cli.md, the man page and the completions name every flag that --help lists, and no other.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"

commands=('' dedup generate 'generate clicks' 'generate lines' filters inspect merge delta
  apply plan model compare count cluster 'cluster create' 'cluster status' 'cluster drop' repro)

# Flags of lines such as "  -k,--key FIELD" and "  --csv   text".
help_flags() {
  local command
  for command in "${commands[@]}"; do
    # shellcheck disable=SC2086  # a command may be two words
    "$SLUICE" $command --help
  done | sed -nE 's/^  (-[^ ]+).*/\1/p' | sed -E 's/=.*//' | tr , '\n' | sort -u
}

# Anything in a text that looks like a flag of ours.
flags_in() {
  grep -oE -- '(^|[^[:alnum:]_/-])--?[[:alnum:]][[:alnum:]-]*' | grep -oE -- '--?[[:alnum:]].*$' |
    sort -u
}
long() { grep -E '^--' || true; }

known=$(help_flags)
[[ $(wc -l <<<"$known") -gt 30 ]] || complain "--help lists too few flags: $known"

# check NAME, with its text as input: every flag is there, and no long one is invented. Not at the
# end of a pipe, where complaints would be lost.
check() {
  local name=$1 found flag
  found=$(flags_in)
  for flag in $known; do
    grep -qxF -- "$flag" <<<"$found" || complain "$name does not mention $flag"
  done
  for flag in $(long <<<"$found"); do
    grep -qxF -- "$flag" <<<"$known" || complain "$name mentions $flag, which does not exist"
  done
}

check docs/cli.md <"$SOURCE/docs/cli.md"
# The page writes \- for a hyphen that is to be typed. What it explains stands right after .TP; what
# it only mentions must exist, too.
page() { sed 's/\\-/-/g; s/\\f[BIR]/ /g' "$SOURCE/apps/cli/sluice.1"; }
check sluice.1 < <(page | grep -A1 -x .TP)
check sluice.1 < <(page)
completions=$SOURCE/apps/cli/completions
check sluice.bash <"$completions/sluice.bash"
# Braces, brackets and quotes stand around flags there; zsh's own options are not ours.
check _sluice < <(sed -E 's/^( *)(_arguments)( -[sS])*/\1\2/; s/[][{}(),'"'"'"*]/ /g' \
  "$completions/_sluice")
# fish spells -k,--key as `-s k -l key`.
check sluice.fish < <(grep '^complete' "$completions/sluice.fish" | grep -oE -- ' -[sl] [0-9a-z-]+' |
  sed 's/^ -s /-/; s/^ -l /--/')
finish
