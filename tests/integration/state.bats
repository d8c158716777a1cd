#!/usr/bin/env bats
# --state: what is remembered across runs, kept whole, and refused.
load helper

# remember NAME TEXT [ARG...]: a run on TEXT with state NAME.
remember() {
  local name=$1 text=$2
  shift 2
  printf '%b' "$text" | sluice dedup "${quiet[@]}" --state "$name" "$@" >remember.out
}

# left_alone ARG...: the run is refused with 2, and the state and its previous are what they were.
left_alone() {
  local before
  before=$(sha256sum s s.previous 2>/dev/null || true)
  refused 2 dedup "$@"
  [[ $(sha256sum s s.previous 2>/dev/null || true) == "$before" ]] || fail "a state file was changed"
}

@test "duplicates are remembered across runs, the state before the last is kept" {
  printf 'a\nb\n' | gives 'a\nb\n' --state s
  [ ! -e s.previous ]
  cp s first
  printf 'b\nc\n' | gives 'c\n' --state s
  cmp s.previous first
  printf 'a\nb\nc\nd\n' | gives 'd\n' --state s
  # Nothing else lies about, and only its owner may read the secret in it.
  [ "$(find . -name 's*' | sort | tr '\n' ' ')" = "./s ./s.previous " ]
  [ "$(stat -c %a s)" = 600 ]
}

@test "a state needs none of the flags that only made its filter" {
  remember s 'a\n' --filter bloom,layout=classic --fpr 1e-4 --untrusted-keys
  printf 'a\nb\n' | sluice dedup --stats none --state s >out
  holds out 'b\n'
}

@test "an exact filter is remembered too" {
  remember s 'a\nb\n' --filter exact
  printf 'b\nc\n' | gives 'c\n' --state s --filter exact
}

@test "a state that holds keys of other parameters is refused, and says which" {
  echo a >input
  remember s 'a\n' --key 1 --seed 5
  left_alone input --state s
  says "'s'" key
  left_alone input --state s --key 2
  left_alone input --state s --key 1 --csv --no-header
  left_alone input --state s --key 1 -d ,
  left_alone input --state s --key 1 --filter exact
  says bloom exact
  left_alone input --state s --key 1 --filter bloom,layout=classic
  left_alone input --state s --key 1 --fpr 1e-3 --expect 10k
  says 1e-06 0.001
  left_alone input --state s --key 1 --expect 20k
  left_alone input --state s --key 1 --seed 6
  says --seed 6
  left_alone input --state s --key 1 --untrusted-keys
  says --untrusted-keys
  printf 'a\nb\n' | gives 'b\n' --state s --key 1 --seed 5
}

@test "a damaged state is refused wherever the damage is; the previous one can be used" {
  remember s 'a\n' && remember s 'b\n'
  echo c >input
  cp s whole
  bytes=$(stat -c %s s)
  for at in 0 9 20 300 $((bytes / 2)) $((bytes - 1)); do
    cp whole s
    flip_byte s "$at"
    left_alone input --state s
    says "'s'" s.previous --state-previous
  done
  for size in 0 1 100 $((bytes / 2)) $((bytes - 1)); do
    head -c "$size" whole >s
    left_alone input --state s
    says "'s'" s.previous --state-previous
  done
  { cat whole && echo more; } >s
  left_alone input --state s
  cp s.previous previous
  printf 'a\nb\n' | gives 'b\n' --state s --state-previous
  # The damaged one did not become the previous one.
  cmp s.previous previous
  printf 'a\nb\nc\n' | gives 'c\n' --state s
}

@test "a foreign or empty file is refused" {
  echo a >input
  printf 'some text that somebody wants to keep\n' >s
  left_alone input --state s
  says "'s'" "not a sluice snapshot"
  : >s
  left_alone input --state s
  mkdir folder
  refused 2 dedup input --state folder
  says folder directory
}

@test "a missing state with a previous one is refused, not started afresh" {
  remember s 'a\n' && remember s 'b\n'
  rm s
  echo c >input
  left_alone input --state s
  says "'s'" s.previous --state-previous
  [ ! -e s ]
  printf 'a\nb\n' | gives 'b\n' --state s --state-previous
}

@test "--state-previous without a previous state, or without --state, is refused" {
  remember s 'a\n'
  echo a >input
  left_alone input --state s --state-previous
  says s.previous
  refused 2 dedup input --state-previous
  says --state
  refused 2 dedup input --checkpoint-every 5
  says --state
  refused 2 dedup input --state s --checkpoint-every soon
  says "'soon'"
  refused 2 dedup input --state s --filter none
  says none
  refused 2 dedup input --state s --filter none,
  refused 2 dedup input --filter none,
  says comma
  refused 2 dedup input --filter bloom,probes=8,
  says comma
}

@test "--state-previous over a whole state is refused: it would be lost" {
  remember s 'a\n' && remember s 'b\n'
  echo c >input
  left_alone input --state s --state-previous
  says "'s'" intact "move the file away"
  mv s aside
  printf 'a\nb\n' | gives 'b\n' --state s --state-previous
}

@test "a run need not repeat what made its state" {
  printf 'a\n' | sluice dedup --stats none --state s --expect 20k --fpr 1e-4 >out
  for flags in "--filter bloom" "--fpr 1e-4" "--expect 20k" "--filter bloom,layout=blocked"; do
    # shellcheck disable=SC2086
    printf 'a\n' | sluice dedup --stats none --state s $flags >out
    holds out ''
  done
  echo a >input
  left_alone input --state s --fpr 1e-3
  says 0.0001 0.001
  printf 'a\n' | sluice dedup --stats none --state t --filter bloom,bytes=1MiB >out
  printf 'a\n' | sluice dedup --stats none --state t --filter bloom >out
  holds out ''
  printf 'a\n' | sluice dedup --stats none --state w --window 1k --fpr 1e-3 --filter apbf >out
  for flags in "--filter apbf" "--fpr 1e-3"; do
    # shellcheck disable=SC2086
    printf 'a\n' | sluice dedup --stats none --state w --window 1k $flags >out
    holds out ''
  done
  refused 2 dedup input --state w --window 1k --fpr 1e-4
}

@test "an output in any of the state's files is refused, also through a link" {
  remember real 'a\n' && remember real 'b\n'
  ln -s real s
  ln -s real.tmp link
  echo c >input
  for name in s real real.previous real.tmp real.previous.tmp real.lock link; do
    refused 2 dedup input --state s -o "$name"
    says --output --state
    refused 2 dedup input --state s --duplicates "$name"
  done
  printf 'a\nb\nc\n' | gives 'c\n' --state s
}

@test "keys that a state cannot hold are refused before the run" {
  echo a >input
  printf 'kept\n' >result
  long=$(printf '%70000s' 1 | tr ' ' 0)
  refused 2 dedup --stats none input --state s --csv --key "$long" -o result
  says --key --state
  many=()
  for ((i = 0; i < 5000; ++i)); do many+=(--key 1); done
  refused 2 dedup --stats none input --state s "${many[@]}" -o result
  says --key --state
  holds result 'kept\n'
  [ ! -e s ]
}

@test "a state refused leaves the output alone" {
  printf 'kept\n' >result
  echo text >s
  echo a >input
  refused 2 dedup input --state s --output result --duplicates result2
  holds result 'kept\n'
  [ ! -e result2 ]
}

@test "two runs at once on one state: the second is refused, the first goes on" {
  mkfifo feed
  start dedup "${quiet[@]}" --state s feed
  exec 7>feed
  echo a >&7
  eventually holds out 'a\n' >/dev/null
  echo b >input
  refused 2 dedup "${quiet[@]}" --state s input
  says "'s'" "another run"
  exec 7>&-
  ends_with 0
  printf 'a\nb\n' | gives 'b\n' --state s
}

@test "--checkpoint-every COUNT saves while the run goes on" {
  mkfifo feed
  start dedup "${quiet[@]}" --state s --checkpoint-every 3 feed
  exec 7>feed
  printf 'a\nb\n' >&7
  eventually holds out 'a\nb\n' >/dev/null
  # So far it says where the run began.
  [ "$(sluice inspect --json s | jq .keys)" = 0 ]
  printf 'b\n' >&7
  saved() { [ "$(sluice inspect --json s | jq .keys)" = 2 ]; }
  eventually saved
  exec 7>&-
  ends_with 0
}

@test "--checkpoint-every TIME saves while the run goes on" {
  mkfifo feed
  start dedup "${quiet[@]}" --state s --checkpoint-every 50ms feed
  exec 7>feed
  fed_and_saved() { echo a >&7 && [ "$(sluice inspect --json s 2>/dev/null | jq .keys)" = 1 ]; }
  eventually fed_and_saved
  exec 7>&-
  ends_with 0
}

@test "the same seed and stream give the same state, byte for byte" {
  lines_of 5000 >input
  # The path of standard output is in the state.
  sluice dedup "${quiet[@]}" --seed 9 --state one input >out
  mv out one.out
  sluice dedup "${quiet[@]}" --seed 9 --state two --threads 1 input >out
  mv out two.out
  cmp one two
  cmp one.out two.out
  sluice dedup "${quiet[@]}" --seed 10 --state three input >/dev/null
  run -1 cmp one three
}

# A state found after a kill must be whole and hold no key whose record is not in the output: fed
# with the whole stream again, what it holds back must be there. Each run has an output of its own,
# since a kill may leave half a line at the end of one. The filter is planned for so few errors,
# under a fixed seed, that no loss of its own confuses the matter. Each run gives up the one before
# it: resume.bats is about runs that continue.
@test "kill -9 at any moment costs duplicates at most, never a record" {
  export LC_ALL=C
  seeded
  kills=$(count 5 100)
  lines_of 100k >input
  sort -u input >want
  flags=(--stats none --expect 100k --fpr 1e-9 --seed 1 --checkpoint-every 1000 --abandon)
  before=$(date +%s%N)
  sluice dedup "${flags[@]}" --state whole input >/dev/null
  run_us=$((($(date +%s%N) - before) / 1000))
  saved=0
  for ((i = 0; i < kills; ++i)); do
    # Now and then from the beginning; otherwise a run killed goes on where a run was killed.
    if ((i % 3 == 0)); then rm -f s s.* out.*; fi
    # From a file: many records are judged and not yet written when a checkpoint comes. From a
    # pipe: the run may be killed while it waits.
    : >out
    if ((i % 4 == 3)); then
      # A new one each time: what an old one still holds must not come first.
      rm -f feed
      mkfifo feed
      start dedup "${flags[@]}" --state s feed
      { head -n $((RANDOM * 3)) input && exec sleep 60; } >feed 2>/dev/null 3>&- &
      started+=("$!")
    else
      start dedup "${flags[@]}" --state s input
    fi
    sleep "$(printf '0.%06d' $((RANDOM * run_us / 32768 % 1000000)))"
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    mv out "out.$i"
    [[ -e s ]] || continue
    saved=$((saved + 1))
    sluice inspect s >/dev/null
    cp s again
    sluice dedup --stats none --state again --abandon input >rest
    sort -u out.* rest | comm -23 want - >missing
    [[ ! -s missing ]] || fail "kill $((i + 1)): $(wc -l <missing) records are in no output"
  done
  echo "states found: $saved of $kills"
  [ "$saved" -gt 0 ]
}
