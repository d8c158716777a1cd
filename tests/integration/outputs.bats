#!/usr/bin/env bats
# Where records go: --output, --duplicates, --invert.
load helper

@test "--output writes there, over what was there" {
  printf 'old and longer than the new\n' >result
  printf 'a\nb\na\n' | gives '' --output result
  holds result 'a\nb\n'
}

@test "--duplicates takes what is held back: the two make up the input" {
  lines_of 20k >input
  sluice dedup "${quiet[@]}" --filter exact input --output once --duplicates again
  awk '!seen[$0]++' input | cmp - once
  awk 'seen[$0]++' input | cmp - again
}

@test "--invert lets the duplicates through and holds the rest back" {
  printf 'a\nb\na\nb\na\n' >input
  gives 'a\nb\na\n' --invert input
  gives 'a\nb\na\n' --invert --duplicates rest input
  holds rest 'a\nb\n'
}

@test "a table's header goes to every output" {
  printf 'id\n1\n1\n2\n' | gives 'id\n1\n2\n' --csv --duplicates again
  holds again 'id\n1\n'
  printf 'id\n1\n1\n2\n' | gives 'id\n1\n' --csv --invert --duplicates rest
  holds rest 'id\n1\n2\n'
}

@test "missing newlines are made up for in each output on its own" {
  printf 'a\nb' >one
  printf 'a\nb' >two
  gives 'a\nb' one two --duplicates again
  holds again 'a\nb'
}

@test "unkeyed records go with the distinct ones" {
  printf 'x 1\ny\nz 1\n' | gives 'x 1\ny\n' --key 2 --duplicates again
  holds again 'z 1\n'
  printf 'x 1\ny\nz 1\n' | gives 'z 1\n' --key 2 --invert --duplicates rest
  holds rest 'x 1\ny\n'
}

@test "devices can be outputs" {
  printf 'a\na\n' | gives 'a\n' --duplicates /dev/null
  printf 'a\na\n' | gives '' --output /dev/null --duplicates /dev/null
}

@test "--filter none lets everything through" {
  printf 'a\na\nb\n' | gives 'a\na\nb\n' --filter none
}

@test "every layout of the filter gives the same" {
  lines_of 20k >input
  awk '!seen[$0]++' input >want
  for filter in exact exact,keys=10 bloom bloom,layout=blocked bloom,layout=classic \
    bloom,bytes=1MiB bloom,layout=classic,probes=20 bloom,keys=50k,fpr=1e-9; do
    sluice dedup --stats none --filter "$filter" --seed 1 input | cmp - want
  done
}

@test "--seed: the same losses; without it, others" {
  lines_of 20k >input
  flags=(--stats none --expect 10k --fpr 1%)
  sluice dedup "${flags[@]}" --seed 1 input >one
  sluice dedup "${flags[@]}" --seed 1 input >two
  sluice dedup "${flags[@]}" --seed 2 input >three
  sluice dedup "${flags[@]}" --untrusted-keys input >four
  sluice dedup "${flags[@]}" input >five
  sluice dedup "${flags[@]}" input >six
  cmp one two
  run -1 cmp one three
  run -1 cmp one four
  run -1 cmp five six
}

@test "every instruction set gives the same" {
  lines_of 20k >input
  sluice generate clicks --records 5k >clicks.json 2>/dev/null
  for level in portable avx2 avx512 neon; do
    SLUICE_SIMD=$level sluice --version >version 2>/dev/null || continue
    grep -qx "simd $level" version
    SLUICE_SIMD=$level sluice dedup --stats none --seed 1 -n 10k --fpr 1% --state "$level.s" input >all
    mv all "$level"
    cmp "$level" portable
    cmp "$level.s" portable.s
    SLUICE_SIMD=$level sluice dedup --stats none --seed 1 -n 9k --json -k /user clicks.json >"$level.json"
    cmp "$level.json" portable.json
  done
  [ -s portable ]
  run -2 --separate-stderr env SLUICE_SIMD=nosuch "$SLUICE" --version
  says nosuch portable
}

@test "--invert: the report says what became of each kind, unkeyed records among them" {
  printf 'x 1\ny\nz 1\n' >input
  run -0 --separate-stderr sluice dedup -n 10 --key 2 input
  [[ $stderr =~ distinct[^$'\n']*"let through" && $stderr =~ duplicates[^$'\n']*"held back" ]]
  [[ $stderr =~ unkeyed[^$'\n']*"let through" ]]
  run -0 --separate-stderr sluice dedup -n 10 --key 2 --invert input
  [[ $stderr =~ distinct[^$'\n']*"held back" && $stderr =~ duplicates[^$'\n']*"let through" ]]
  [[ $stderr =~ unkeyed[^$'\n']*"held back" ]]
  run -0 --separate-stderr sluice dedup -n 10 --key 3 --invert input
  says "all were held back"
  run -0 sluice dedup --help
  [[ $output == *"unkeyed"* ]]
}

@test "SLUICE_SIMD that is empty is as good as none" {
  printf 'a\na\n' | SLUICE_SIMD='' gives 'a\n'
}

@test "- is standard output, for one of the outputs" {
  printf 'a\nb\na\n' >input
  gives 'a\nb\n' -o - input
  gives 'a\n' --duplicates - -o passed input
  holds passed 'a\nb\n'
  gives 'a\n' --duplicates=- --output passed input
  printf 'x 7200\ny 7201\nz 10\n' >timed
  sluice dedup --stats none --key 1 --window 1m --event-time 2 --late mark \
    --late-output - -o passed timed >out
  holds out 'z 10\n'
  holds passed 'x 7200\ny 7201\n'
  [ ! -e - ]
  sluice generate lines -n 3 -o - 2>log | wc -l | grep -qx 3
  # A file of that name has a folder.
  gives '' -o ./- input
  holds ./- 'a\nb\n'
}

@test "two outputs on standard output are refused, and a state is never written there" {
  printf 'a\na\n' >input
  refused 2 dedup --duplicates - input
  says "--duplicates - and the output are both standard output" "--output FILE"
  refused 2 dedup -o - --duplicates - input
  says "--duplicates - and the output are both standard output"
  refused 2 dedup -o x --duplicates - --window 1m --event-time 1 --late mark --late-output - input
  says "--late-output - and --duplicates - are both standard output"
  [ ! -e x ]
  gives 'a\n' --state s input
  refused 2 merge s s -o -
  says "--output -" "name a file"
  refused 2 delta s -o -
  says "--output -" "name a file"
}
