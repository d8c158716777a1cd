#!/usr/bin/env bats
# Wrong flags, full disks: one sentence, the right exit code, nothing destroyed.
load helper

@test "a flag takes no value" {
  refused 2 dedup --json=0 /dev/null
  says "--json takes no value"
}

@test "wrong flags are refused with 2 and one sentence" {
  echo a >input
  refused 2 dedup --no-such-flag input
  says --no-such-flag "sluice dedup --help"
  refused 2 dedup --stats
  says --stats
  refused 2 dedup --stats xml input
  says "'xml'" "text, json or none"
  refused 2 no-such-command
  says no-such-command
  refused 2 generate
  refused 2 generate foo
  says "error: 'foo'" "clicks or lines"
  refused 2 dedup input --fpr 2
  says --fpr "'2'"
  refused 2 dedup input --fpr 0
  refused 2 dedup input --expect x
  says --expect "'x'"
  refused 2 dedup input --expect 0
  refused 2 dedup input --expect 99999999999G
  refused 2 dedup input --seed -1
  says --seed
  refused 2 dedup input --max-record 1M
  says "1MiB" "1MB"
  refused 2 dedup input --max-record 0
  says --max-record
}

@test "usage errors say what is wrong and what would be right" {
  refused 2 no-such-command
  says "there is no command 'no-such-command': choose from dedup, generate," "; see sluice --help"
  refused 2 dedup --no-such-flag=3 --other
  says "sluice dedup: error: there is no flag --no-such-flag; see sluice dedup --help"
  refused 2 --json dedup
  says "--json must come after the command 'dedup', not before it"
  refused 2 filters x
  says "the argument 'x' is one too many; see sluice filters --help"
  refused 2 dedup --fpr
  says "--fpr needs a value: --fpr P;"
  refused 2 dedup -o a -o b
  says "--output is given 2 times: give it once;"
  refused 2 dedup --csv=abc
  says "--csv takes no value;"
  refused 2 dedup --output=
  says "--output has an empty value: give one, or leave the flag out;"
  refused 2 inspect ""
  says "a file has an empty name;"
  refused 2 inspect
  says "no file given: inspect takes 1;"
  refused 2 merge -o x
  says "no file given: merge takes at least 2;"
  refused 2 merge -o x a
  says "1 file given: merge takes at least 2;"
  refused 2 delta -o x a b c
  says "3 files given: delta takes at most 2;"
  refused 2 merge a b
  says "--output FILE is required;"
  refused 2 generate
  says "'generate' must be followed by one of: clicks, lines;"
}

@test "an empty value is refused, not ignored" {
  echo a >input
  for flag in --state --output --duplicates --filter --expect --fpr --seed --delimiter; do
    refused 2 dedup input "$flag" ""
    says "$flag" empty
  done
}

@test "an empty value after = is refused and does not swallow the next argument" {
  printf 'a\na\n' >input
  for flag in --state --output --duplicates --late-output --filter --stats; do
    refused 2 dedup "$flag=" input
    says "$flag" empty
  done
  holds input 'a\na\n'
  refused 2 generate lines -n 1 --output=
  says --output empty
  refused 2 generate lines -n 1 -o ""
  says --output empty
  # The whole document is a key; after -- everything is a file.
  printf '1\n1.0\n2\n' | gives '1\n2\n' --json --key= -
  printf 'b\n' >--output=
  gives 'b\n' -- --output=
}

@test "filters and their parameters: what is wrong, what there is" {
  echo a >input
  refused 2 dedup input --filter nosuch
  says "'nosuch'" bloom exact none
  refused 2 dedup input --filter bloom,size=3
  says "'size'" "bytes, probes"
  refused 2 dedup input --filter bloom,probes=99999
  says probes "1 to 64"
  refused 2 dedup input --filter bloom,probes
  says name=value
  refused 2 dedup input --filter bloom,probes=8,probes=8
  says twice
  refused 2 dedup input --filter bloom,layout=round
  says blocked classic
  refused 2 dedup input --filter exact,probes=8
  refused 2 dedup input --filter none,keys=8
  refused 2 dedup input --filter bloom,bytes=1
}

@test "an output that is also an input is refused, and the input is left alone" {
  printf 'a\na\n' >input
  ln input hard
  ln -s input soft
  for name in input ./input hard soft; do
    refused 2 dedup input --output "$name"
    says --output input
    refused 2 dedup input --duplicates "$name"
    says --duplicates input
  done
  run -2 --separate-stderr bash -c '"$SLUICE" dedup input >>input'
  says "standard output is also the input 'input'"
  # shellcheck disable=SC2094
  refused 2 dedup --output input <input
  holds input 'a\na\n'
}

@test "two outputs in one file, or an output in the state, are refused" {
  printf 'a\na\n' >input
  refused 2 dedup input --output x --duplicates ./x
  says --duplicates --output
  refused 2 dedup input --output x.state --state ./x.state
  says --output --state
  [ ! -e x.state ]
  gives 'a\n' input --state x.state
  cp x.state before
  refused 2 dedup input --output x.state --state x.state
  refused 2 dedup input --duplicates x.state --state x.state
  cmp x.state before
}

@test "a refused run leaves the outputs as they were, and makes none" {
  printf 'id\n1\n1\n' >input
  printf 'precious\n' | tee result again late >/dev/null
  refused 2 dedup --csv --key nosuch input "${quiet[@]}" -o result --duplicates again
  refused 2 dedup --csv --key nosuch input --stats none --window 1h --event-time id --late mark \
    --late-output late -o new
  holds result 'precious\n'
  holds again 'precious\n'
  holds late 'precious\n'
  [ ! -e new ]
  # A run that had nothing to write empties them all the same.
  printf '' | gives '' -o result --duplicates again --window 1h --event-time 1 --late mark \
    --late-output late
  holds result ''
  holds again ''
  holds late ''
  printf '' | gives '' -o new
  [ -e new ]
}

@test "only standard output may be closed quietly" {
  lines_of 200k >input
  run -1 --separate-stderr bash -c \
    '"$SLUICE" dedup --stats none input -o result --duplicates >(exec head -n 1 >/dev/null)'
  says /dev/fd/ "Broken pipe"
  run -0 bash -c 'set -o pipefail; "$SLUICE" dedup --stats none input | head -n 1'
}

@test "standard output on a full disk: exit 1" {
  lines_of 1000 >input
  run -1 --separate-stderr bash -c '"$SLUICE" dedup --stats none input >/dev/full'
  says "standard output" "No space left"
  [ "${#stderr_lines[@]}" -eq 1 ]
}

@test "standard output on a full disk: no state is saved that holds what was not written" {
  lines_of 1000 >input
  run -1 bash -c '"$SLUICE" dedup --stats none -n 1k --state s input >/dev/full'
  [ "$(sluice inspect --json s | jq .keys)" = 0 ]
}

@test "--output on a full disk: exit 1, named, and the state holds none of it" {
  small_disk
  lines_of 40000 >input
  refused 1 dedup --stats none --expect 100k input --output small/result --state s
  says small/result "No space left"
  [ "$(sluice inspect --json s | jq .keys)" = 0 ]
}

@test "--duplicates on a full disk: exit 1, named" {
  small_disk
  { lines_of 40000 && lines_of 40000; } >input
  run -1 --separate-stderr sluice dedup "${quiet[@]}" input --duplicates small/again
  says small/again "No space left"
}

@test "--state on a full disk: exit 1, the state before is whole, nothing is left behind" {
  small_disk
  lines_of 1000 >input
  # Each state takes about 300 kB: there is room for two and not for a third.
  sluice dedup --stats none --expect 60k --state small/s input >out
  lines_of 1000 2 >second
  sluice dedup --stats none --expect 60k --state small/s second >out
  cp small/s before
  head -c 1M /dev/zero >small/ballast || true
  run -1 --separate-stderr sluice dedup --stats none --state small/s input
  says small/s "No space left"
  cmp small/s before
  [ -e small/s.previous ]
  [ ! -e small/s.tmp ]
  rm small/ballast
  sluice dedup --stats none --state small/s input >out
  holds out ''
}

@test "a limit on the size of files is an error like a full disk" {
  lines_of 20000 >input
  run -1 --separate-stderr bash -c 'ulimit -f 64; exec "$SLUICE" dedup --stats none input --output result'
  says result "File too large" "ulimit -f"
  run -1 --separate-stderr bash -c 'ulimit -f 64; exec "$SLUICE" dedup --stats none input --state s >/dev/null'
  says "s.tmp" "File too large"
  [ "$(sluice inspect --json s | jq .keys)" = 0 ]
  [ ! -e s.tmp ]
  # With more room, the same command goes on.
  run -1 --separate-stderr bash -c 'ulimit -f 300; exec "$SLUICE" dedup --stats none --filter exact \
    --checkpoint-every 1 input --state t --output result'
  says "File too large"
  [ "$(find . -name 't.*' ! -name t.previous)" = "" ]
  sluice dedup --stats none --filter exact input --state t --output result
  awk '!seen[$0]++' input | cmp - result
}

@test "at the limit on the size of files, the state holds nearly all that a pipe brought and was delivered" {
  seq 1000000 1200000 >input
  run -1 --separate-stderr bash -c 'cat input 2>/dev/null | (ulimit -f 300
    exec "$SLUICE" dedup --stats none --filter exact --expect 10 --state s -o out)'
  says "cannot write" "File too large" "the state is the one saved after" "must be sent again"
  bytes=$(sluice inspect --json s | jq '.outputs[0].bytes')
  keys=$(sluice inspect --json s | jq .keys)
  [ "$keys" -gt 0 ]
  [ "$((8 * keys))" -eq "$bytes" ]
  # What is not in the state is sent again.
  tail -n +$((keys + 1)) input | sluice dedup --stats none --filter exact --state s -o out
  cmp out input
}

@test "outputs that cannot be opened are named" {
  echo a >input
  refused 1 dedup input --output no-such-folder/x
  says no-such-folder/x
  refused 1 dedup input --duplicates no-such-folder/x
  says no-such-folder/x
  refused 1 dedup input --state no-such-folder/x
  says no-such-folder/x directory
  [[ $stderr != *lock* ]]
}

@test "an exact filter that cannot grow any more: exit 1, named" {
  grep -q __asan_init "$SLUICE" && skip "the sanitizer takes more address space than is left here"
  lines_of 3M >input
  run -1 --separate-stderr bash -c \
    'ulimit -v 100000; exec "$SLUICE" dedup --stats none --filter exact input >/dev/null'
  says "'exact'" memory
}

@test "a growing filter that cannot grow any more: exit 1, named" {
  grep -q __asan_init "$SLUICE" && skip "the sanitizer takes more address space than is left here"
  lines_of 9M >input
  run -1 --separate-stderr bash -c \
    'ulimit -v 60000; exec "$SLUICE" dedup --stats none --filter growing input >/dev/null'
  says "'growing'" memory
}
