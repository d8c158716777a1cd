#!/usr/bin/env bats
# sluice merge: one state of what several saw.
load helper

# site NAME SEED [FLAG...]: a state NAME.s of the lines NAME.txt.
site() {
  local name=$1 seed=$2
  shift 2
  lines_of 2000 "$seed" >"$name.txt"
  sluice dedup --stats none --seed "${secret:-9}" "$@" --state "$name.s" "$name.txt" >/dev/null
}

# A merge that is refused, with these words, and writes nothing.
unmerged() {
  local files=$1
  shift
  # shellcheck disable=SC2086  # several files
  refused 2 merge $files -o out.s
  says "$@"
  [ ! -e out.s ] && [ ! -e out.s.tmp ] && [ ! -e out.s.lock ]
}

@test "a merged state holds back what any of its inputs saw" {
  for flags in '--expect 10k' '--expect 10k --filter bloom,layout=classic' '--filter exact'; do
    rm -f ./*.s ./*.s.previous
    # shellcheck disable=SC2086  # several words
    for n in 1 2 3; do site "$n" "$n" $flags; done
    sluice merge 1.s 2.s 3.s -o all.s >/dev/null
    [[ $(stat -c %a all.s) == 600 ]]
    cat 1.txt 2.txt 3.txt | sluice dedup --stats none --seed 9 --state all.s >out
    [ ! -s out ]
    lines_of 500 77 | sluice dedup --stats none --state all.s >out
    [[ $(wc -l <out) -gt 300 ]]
  done
}

@test "the error that results is told, as text and as JSON" {
  site a 1 --expect 10k
  site b 2 --expect 10k
  run -0 --separate-stderr sluice merge a.s b.s --output both.s
  [[ $output == *"2 states merged"*"a.s"*"keys"*"predicted false positives"*"both.s"* ]]
  [[ -z $stderr ]]
  sluice merge --json a.s b.s -o both.s >told
  sluice inspect --json a.s >a.json
  sluice inspect --json both.s >both.json
  [[ $(jq .keys told) == "$(jq .keys both.json)" ]]
  [[ $(jq .predicted_fpr told) == "$(jq .predicted_fpr both.json)" ]]
  [[ $(jq '.inputs[0].predicted_fpr' told) == "$(jq .predicted_fpr a.json)" ]]
  [[ $(jq --raw-output '.inputs[1].file, .filter, .over_target' told | xargs) == 'b.s bloom false' ]]
  [[ $(jq '.keys >= .inputs[0].keys and .keys <= .inputs[0].keys + .inputs[1].keys' told) == true ]]
  [ -e both.s.previous ]
}

@test "more keys than the filter was planned for: a warning" {
  site a 1 --expect 1500
  site b 2 --expect 1500
  run -0 --separate-stderr sluice merge a.s b.s -o both.s --json
  says warning both.s "above the target" --expect
  [[ $(jq .over_target <<<"$output") == true ]]
}

@test "what is not made alike is refused, both files and the difference named" {
  site a 1 --expect 10k
  site params 2 --expect 20k
  site layout 2 --expect 10k --filter bloom,layout=classic
  site exact 2 --filter exact
  sluice dedup --stats none --expect 10k --untrusted-keys --state hash.s a.txt >/dev/null
  site keys 2 --expect 10k --key 1
  secret=10 site secret 2 --expect 10k
  unmerged 'a.s params.s' "'a.s'" "'params.s'" keys=10000 keys=20000 --expect
  unmerged 'a.s layout.s' "'a.s'" "'layout.s'"
  unmerged 'a.s exact.s' "'a.s' holds a filter 'bloom'" "'exact.s' a filter 'exact'"
  unmerged 'a.s hash.s' "'a.s' hashes keys with xxh3" "'hash.s' with highway" --untrusted-keys
  unmerged 'a.s keys.s' "'a.s'" "'keys.s'" key=1
  unmerged 'a.s secret.s' "'a.s'" "'secret.s'" "different secrets" "--seed N" "one state file"
  unmerged 'a.s a.s secret.s' "'secret.s'"
}

@test "exact states of any expected size can be merged" {
  site a 1 --filter exact --expect 10k
  site b 2 --filter exact --expect 20
  sluice merge a.s b.s -o both.s --json >told
  [[ $(jq .keys told) == "$(sort -u a.txt b.txt | wc -l)" ]]
}

@test "a window is refused, with the reason" {
  site w 1 --window 1k
  site v 2 --window 1k
  unmerged 'w.s v.s' "'w.s' and 'v.s'" "filters that age" "too early or too late"
}

@test "a missing, damaged or foreign input is refused" {
  site a 1 --expect 10k
  unmerged 'a.s gone.s' "there is no state file 'gone.s'"
  cp a.s bad.s
  flip_byte bad.s 3000
  unmerged 'a.s bad.s' "'bad.s'" damaged
  unmerged 'a.txt a.s' "'a.txt' is not a sluice snapshot"
}

@test "an input is never written over" {
  site a 1 --expect 10k
  site b 2 --expect 10k
  cp a.s before
  ln -s a.s link.s
  for output in a.s ./a.s link.s; do
    refused 2 merge a.s b.s -o "$output"
    says --output a.s "another file"
  done
  cp a.s c.s.previous
  refused 2 merge c.s.previous b.s -o c.s
  cmp a.s before
}

@test "an output that another run uses is refused, and a full disk leaves nothing behind" {
  site a 1 --expect 60k
  site b 2 --expect 60k
  mkfifo pipe
  start dedup "${quiet[@]}" --state used.s pipe
  exec 9>pipe
  eventually test -e used.s.lock
  refused 2 merge a.s b.s -o used.s
  says used.s "in use"
  exec 9>&-
  ends_with 0
  small_disk
  head -c 1M /dev/zero >small/ballast || true
  refused 1 merge a.s b.s -o small/m.s
  says small/m.s "No space left"
  [ ! -e small/m.s ] && [ ! -e small/m.s.tmp ]
}

@test "usage: one file, no output" {
  site a 1 --expect 10k
  refused 2 merge a.s -o m.s
  refused 2 merge a.s a.s
  says --output
}

@test "growing filters that saw the same in another order are one, and keys are taken back once" {
  seq 1 20000 >up
  sort -rn up >down
  sluice dedup --stats none --seed 1 --state a up >/dev/null
  sluice dedup --stats none --seed 1 --state b down >/dev/null
  sluice merge --json a b -o c >json
  jq --exit-status '.keys == 20000' json || { cat json && false; }
  seq 1 5 >back
  sluice dedup --stats json --state c --forget back up >out 2>err
  [ "$(stat_of .forget.forgotten)" -eq 5 ]
  cmp out back
  # Another error is another filter.
  sluice dedup --stats none --seed 1 --fpr 1e-4 --state d up >/dev/null
  refused 2 merge a d -o e
  says "fpr"
}
