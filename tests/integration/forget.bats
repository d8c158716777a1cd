#!/usr/bin/env bats
# sluice dedup --forget: keys taken back before a run.
load helper

@test "keys taken back are let through again, the others are not" {
  printf '%s\n' a b c d >input
  printf '%s\n' b d x >back
  for flags in '' '--filter exact' '--filter counting,keys=1k' '--filter dynamic,forget=yes,keys=100' \
    '--window 100' '--window 100 --filter exact' '--window 1h --arrival-time'; do
    rm -f s s.previous
    # shellcheck disable=SC2086  # several words
    sluice dedup $flags --stats none --state s input >/dev/null
    # shellcheck disable=SC2086
    sluice dedup $flags --stats json --state s --forget back input >out 2>err
    holds out 'b\nd\n'
    [[ $(stat_of '.forget | .forgotten, .missing' | xargs) == '2 1' ]]
    [[ $(stat_of '.forget.expected_wrong < 1e-6') == true ]]
    # shellcheck disable=SC2086
    sluice dedup $flags --stats none --state s input >out
    holds out ''
  done
}

@test "without --forget the statistics do not speak of it" {
  echo a | sluice dedup --stats json --filter exact >/dev/null 2>err
  [[ $(stat_of .forget) == null ]]
  echo a | sluice dedup --filter exact >/dev/null 2>err
  run ! grep forgotten err
  echo a >back
  echo a | sluice dedup --filter exact --forget back >/dev/null 2>err
  grep -E 'forgotten +0  keys of --forget; not held: 1; about 0 other keys' err
}

@test "the file is cut and keyed like the input, with a header of its own" {
  printf 'id,name\n1,ann\n2,bob\n3,eve\n' >input
  printf 'reason,id\ncancelled,2\n' >back
  sluice dedup --csv --key id --filter exact --stats none --state s input >/dev/null
  sluice dedup --csv --key id --stats none --state s --forget back input >out
  holds out 'id,name\n2,bob\n'
  printf '{"id":1}\n{"id":2}\nbroken\n' >back.json
  printf '{"id":2.0,"n":"x"}\n{"id":3}\n' >in.json
  sluice dedup --json --key /id --filter exact --stats none --state j in.json >/dev/null
  run -0 --separate-stderr sluice dedup --json --key /id --stats none --state j \
    --forget back.json in.json
  [[ $output == '{"id":2.0,"n":"x"}' ]]
  says warning "'back.json'" "1 of 3 records"
}

@test "event time is not needed in it" {
  printf '1 10 a\n1 11 b\n' >input
  printf 'x x a\n' >back
  flags=(--key 3 --window 1h --event-time 2 --stats none --state s)
  sluice dedup "${flags[@]}" input >/dev/null
  sluice dedup "${flags[@]}" --forget back input >out
  holds out '1 10 a\n'
}

@test "no input is fine: the state is changed and saved" {
  printf '%s\n' a b | sluice dedup --filter exact --stats none --state s >/dev/null
  echo a >back
  sluice dedup --stats none --state s --forget back </dev/null >out
  holds out ''
  printf '%s\n' a b | sluice dedup --stats none --state s >out
  holds out 'a\n'
  echo b | sluice dedup --stats none --state s --forget - /dev/null
  printf '%s\n' a b | sluice dedup --stats none --state s >out
  holds out 'b\n'
}

@test "a run that only forgets leaves the next one of a daily job where it was" {
  daily=(dedup --stats none -k 1 --filter exact --state s -o out --duplicates twice)
  echo 'o2 mon' >mon
  sluice "${daily[@]}" mon
  echo o2 >back
  # The same output, none, another one, and a pipe.
  sluice dedup --stats none -k 1 --state s -o out --forget back </dev/null
  sluice dedup --stats none -k 1 --state s --forget back </dev/null >/dev/null
  sluice dedup --stats none -k 1 --state s -o other --forget back </dev/null
  sluice dedup --stats none -k 1 --state s --forget back mon | cat >by-pipe
  holds by-pipe 'o2 mon\n'
  sluice dedup --stats none -k 1 --state s --forget back </dev/null >/dev/null
  echo 'o2 tue' >tue
  sluice "${daily[@]}" mon tue
  holds out 'o2 mon\no2 tue\n'
  holds twice ''
  # When an output of the daily job is known no longer, its inputs are read from their beginning.
  for i in {1..64}; do sluice dedup --stats none -k 1 --state s -o "other.$i" </dev/null; done
  sluice "${daily[@]}" mon tue
  holds twice 'o2 mon\no2 tue\n'
}

@test "a run that only forgets does not disturb a daily job, at whichever call it is killed" {
  : "${SLUICE_SHIM:?set it to the library that ends a process at a call, see syscall_shim.cpp}"
  daily=(dedup --stats none -k 1 --filter exact --state s -o out)
  echo 'o2 mon' >mon
  echo 'o2 tue' >tue
  echo o2 >back
  for ((call = 1, code = 137; code == 137; ++call)); do
    rm -f s s.* out
    sluice "${daily[@]}" mon
    code=0
    LD_PRELOAD=$SLUICE_SHIM SLUICE_SHIM_DIRECTORY=$PWD SLUICE_SHIM_EXIT_AT=$call \
      "$SLUICE" dedup --stats none -k 1 --state "$PWD/s" -o "$PWD/out" --forget back </dev/null || code=$?
    sluice "${daily[@]}" mon tue
    [ "$(grep -c mon out)" -eq 1 ]
  done
  [ "$code" -eq 0 ] && [ "$call" -gt 10 ]
  holds out 'o2 mon\no2 tue\n'
}

@test "FILE, new or changed, does not make a daily job read its inputs again" {
  daily=(dedup --filter exact -k 1 --state s -o out)
  echo 'o2 mon' >mon
  sluice "${daily[@]}" --stats none mon
  echo o2 >back
  run -0 --separate-stderr sluice "${daily[@]}" --forget back mon
  says "forgotten" "nothing new"
  cp s before
  run -0 --separate-stderr sluice "${daily[@]}" --forget back mon
  says "nothing left to do"
  cmp s before
  # It is done again for each run that has something to read, whether or not FILE has changed.
  for day in tue wed; do
    echo "o2 $day" >"$day"
    sluice "${daily[@]}" --stats none --forget back mon "$day"
  done
  echo 'o3 thu' >thu
  echo 'o3 fri' >fri
  echo o3 >back
  sluice "${daily[@]}" --stats none --forget back mon thu
  sluice "${daily[@]}" --stats none --forget back fri
  holds out 'o2 mon\no2 tue\no2 wed\no3 thu\no3 fri\n'
}

@test "a filter that cannot is refused before anything is read or changed" {
  echo a >back
  echo old >kept
  sluice dedup "${quiet[@]}" --state s back >/dev/null
  cp s before
  for flags in '--expect 10k' '--filter none' '--filter dynamic' '--window 100 --filter apbf' \
    '--state s'; do
    # shellcheck disable=SC2086  # several words
    refused 2 dedup $flags --forget back --output kept back
    says "--forget 'back'" "cannot forget keys"
  done
  holds kept 'old\n'
  cmp s before
}

@test "wrong uses are refused" {
  echo a >back
  refused 2 dedup --filter exact --forget - </dev/null
  says "--forget -" "standard input"
  refused 2 dedup --filter exact --forget - - </dev/null
  refused 1 dedup --filter exact --forget gone back
  says gone
  refused 2 dedup --filter exact --forget back -o back /dev/null
  says back "another file"
  holds back 'a\n'
}

@test "a run that fails while it takes back changes nothing" {
  printf '{"id":1}\n{"id":2}\n' >input
  printf '{"id":1}\n{}\n' >back
  flags=(--json --key /id --stats none --state s)
  sluice dedup "${flags[@]}" --filter exact input >/dev/null
  cp s before
  refused 1 dedup "${flags[@]}" --strict --forget back input
  says "back: record 2: there is no /id in '{}'" "leave it out"
  cmp s before
}

@test "interrupted while it takes back: nothing is changed" {
  printf '%s\n' a b | sluice dedup --filter exact --stats none --state s >/dev/null
  cp s before
  mkfifo pipe
  start dedup --stats none --state s --forget pipe /dev/null
  exec 9>pipe
  echo a >&9
  eventually test -e s.lock
  kill -INT "$pid"
  ends_with 130
  exec 9>&-
  grep "nothing was changed" err
  cmp s before
}

# What a crash leaves: the state is saved when all keys are taken back, before the input is read.
@test "killed behind the taking back: the keys are gone for good" {
  printf '%s\n' a b | sluice dedup --filter exact --stats none --state s >/dev/null
  cp s before
  echo a >back
  mkfifo pipe
  start dedup --stats none --state s --forget back pipe
  exec 9>pipe
  changed() { ! cmp -s s before; }
  eventually changed
  kill -KILL "$pid"
  ends_with 137
  exec 9>&-
  printf '%s\n' a b | sluice dedup --stats none --state s >out
  holds out 'a\n'
}

@test "keys that were never there, and what they cost" {
  lines_of 20000 1 >input
  lines_of 20000 2 | sort -u >back
  sluice dedup --window 20k --filter cohort,slot=16 --fpr 0.01 --seed 1 --stats none --state s input >/dev/null
  sluice dedup --window 20k --stats json --state s --forget back </dev/null 2>err
  [[ $(stat_of '.forget.missing > 10000 and .forget.forgotten < 500') == true ]]
  # What was found by chance is about what was predicted.
  [[ $(stat_of '.forget | (.forgotten - .expected_wrong) / (1 + .expected_wrong) |
    . < 0.5 and . > -0.5') == true ]]
}

@test "a FILE that changed while a run was unfinished is done when it continues" {
  echo 3 >a
  { head -c 5000 /dev/zero | tr '\0' x && echo; } >b
  echo 2 >gone
  job=(sluice dedup --filter exact --stats none --state s --max-record 4KiB --checkpoint-every 1 --forget gone
    -o out a b)
  run -1 "${job[@]}"
  sleep 0.05
  echo 3 >gone
  echo 3 >b
  run -0 "${job[@]}"
  holds out '3\n3\n'
}
