#!/usr/bin/env bats
# sluice delta, sluice apply: what changed between two states.
load helper

# version NAME LINES [FLAG...]: saves the state s, with some more lines, as NAME.
version() {
  local name=$1 lines=$2
  shift 2
  lines_of "$lines" "${name//[!0-9]/}" | sluice dedup --stats none "$@" --state s >/dev/null
  cp s "$name"
}

# An apply or delta that is refused with CODE, and writes nothing.
unwritten() {
  local code=$1
  shift
  refused "$code" "$@" -o out
  [ ! -e out ] && [ ! -e out.tmp ] && [ ! -e out.lock ]
}

@test "a chain of deltas gives the sender's state, for every kind of filter" {
  for flags in '--expect 30k' '--filter bloom,layout=classic --expect 30k' '--filter exact' \
    '--window 5k' '--window 2k --filter exact'; do
    rm -f s s.previous
    # shellcheck disable=SC2086  # several words
    version v0 2000 $flags
    sluice delta v0 -o d0 >/dev/null
    sluice apply d0 -o r0 >/dev/null
    for n in {1..10}; do
      # shellcheck disable=SC2086
      version "v$n" 300 $flags
      sluice delta "v$((n - 1))" "v$n" -o "d$n" >/dev/null
      sluice apply "r$((n - 1))" "d$n" -o "r$n" >/dev/null
      cmp "v$n" "r$n"
    done
  done
  [[ $(stat -c %a d1 r1) == $'600\n600' ]]
}

@test "one per cent of the keys is less than 15 % of the bytes" {
  sluice generate lines --records 101k --duplicates 0 2>/dev/null >all
  head -n 100000 all | sluice dedup --stats none --expect 100k --filter bloom,layout=classic \
    --state old >/dev/null
  cp old new
  tail -n 1000 all | sluice dedup --stats none --state new >/dev/null
  sluice delta old new -o d --json >told
  [[ $(jq '.share < 0.15 and .whole == false' told) == true ]]
  [[ $(jq .delta_bytes told) == "$(stat -c %s d)" ]]
  [[ $(jq '.old_bytes, .new_bytes' told | xargs) == "$(stat -c %s old new | xargs)" ]]
  sluice apply old d -o copy --json >told
  [[ $(jq .delta_bytes told) == "$(stat -c %s d)" ]]
  cmp new copy
  sluice delta old new -o d >told
  grep -F "from 'old' to 'new'" told
}

@test "a gap and a repeat are refused and told apart" {
  for n in 1 2 3; do version "v$n" 200 --expect 10k; done
  sluice delta v1 v2 -o d2 >/dev/null
  sluice delta v2 v3 -o d3 >/dev/null
  unwritten 2 apply v1 d3
  says "'d3' was made against version" "'v1' is version" "between"
  unwritten 2 apply v2 d2
  says "'v2' is already the version that 'd2' leads to"
  unwritten 2 apply d2
  says "'d2' was made against" "name the snapshot"
  sluice delta v2 -o whole >/dev/null
  unwritten 2 apply v1 whole
  says "'whole' holds a whole snapshot" "without 'v1'"
}

@test "what is not two versions of one filter has no delta" {
  version v1 200 --expect 10k
  rm s
  version v2 200 --expect 10k
  unwritten 2 delta v1 v2
  says "'v1' and 'v2'" "different secrets" "--seed N"
  rm s
  version v3 200 --filter exact
  unwritten 2 delta v1 v3
  says "'v1' is a filter 'bloom'" "'v3' is a filter 'exact'"
}

@test "a damaged delta or state is refused, and nothing is written" {
  version v1 2000 --expect 10k
  version v2 2000
  sluice delta v1 v2 -o d >/dev/null
  size=$(stat -c %s d)
  for at in 0 9 20 60 300 $((size / 2)) $((size - 1)); do
    cp d bad
    flip_byte bad "$at"
    unwritten 2 apply v1 bad
    says "'bad'"
    head -c "$at" d >bad
    unwritten 2 apply v1 bad
  done
  cp v1 bad
  flip_byte bad 9000
  unwritten 2 apply bad d
  says "snapshot 'bad' is refused" damaged
  unwritten 2 delta bad v2
  unwritten 2 delta v1 bad
  says "'bad'"
  unwritten 2 apply v1 v2
  says "'v2'" "not a sluice delta"
  unwritten 2 apply v1 gone
  says "there is no file 'gone'"
  unwritten 2 apply v1 /dev/null
  says "not a regular file"
}

@test "an output is never an input, and keeps what it held when a delta is refused" {
  version v1 200 --expect 10k
  version v2 200
  sluice delta v1 v2 -o d >/dev/null
  for input in v1 v2; do
    refused 2 delta v1 v2 -o "$input"
    says --output "'$input'"
  done
  refused 2 apply v1 d -o d
  refused 2 apply v1 d -o v1
  cp v1 out
  refused 2 apply v2 d -o out
  cmp v1 out
  [ ! -e out.previous ]
  sluice apply v1 d -o out >/dev/null
  cmp v2 out
  cmp v1 out.previous
  sluice delta v1 v2 -o d >/dev/null
  [ ! -e d.previous ]
}

@test "a full disk: exit 1, nothing is left behind" {
  version v1 2000 --expect 60k
  version v2 2000
  sluice delta v1 v2 -o d >/dev/null
  small_disk
  head -c 1M /dev/zero >small/ballast || true
  refused 1 apply v1 d -o small/v2
  says small/v2 "No space left"
  refused 1 delta v2 -o small/d
  [[ $(ls small) == ballast ]]
}

@test "what is no file, or no delta, is not replaced" {
  printf '%s\n' a b | sluice dedup "${quiet[@]}" --state s >/dev/null
  cp s t
  echo c | sluice dedup "${quiet[@]}" --state t >/dev/null
  mkdir there
  mkfifo pipe
  for target in there pipe; do
    refused 2 delta s t -o "$target"
    says "$target" "another file"
    refused 2 merge s t -o "$target"
    says "$target" "another file"
  done
  [ -d there ]
  [ -p pipe ]
  # Arguments that changed places would cost a state.
  cp t before
  refused 2 delta s -o t
  says "'t'" "not a delta"
  cmp t before
  sluice delta s t -o d
  sluice apply s d -o u
  refused 2 apply s d -o there
  [ -d there ]
  cmp t u
}
