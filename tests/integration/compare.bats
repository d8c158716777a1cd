#!/usr/bin/env bats
# sluice compare: filters side by side, with the exact truth beside them.
load helper

# ask EXPRESSION [FILE]: of the object in ./out, by jq; it must be true.
ask() {
  jq --exit-status "$1" "${2:-out}" >/dev/null || {
    echo "not true: $1"
    cat "${2:-out}"
    return 1
  }
}

# catches_term PID: from now on SIGTERM is caught there.
catches_term() { (("0x$(awk '/^SigCgt/ { print $2 }' "/proc/$1/status")" & 0x4000)); }

# without_rates FILE: what the same seed gives again.
without_rates() { jq --sort-keys 'del(.filters[].records_per_second)' "$1"; }

@test "a table: a line per filter under a line of names, all of one width" {
  sluice compare --stream zipf --records 20k --memory 8KiB --filter bloom --filter stable \
    --filter exact >out
  head -n 1 out | grep -qx 'zipf: 20,000 records, 10,000 distinct, 10,000 duplicates'
  sed -n 2p out | grep -qx 'truth: 768 KiB, exact; each filter of fixed size: 8 KiB'
  [ "$(wc -l <out)" -eq 7 ]
  sed -n 4p out | grep -q '^filter .*bytes .*bits/key .*false+ .*false- .*predicted+ .*M records/s$'
  [ "$(tail -n 4 out | awk '{ print length }' | sort -u | wc -l)" -eq 1 ]
  [ "$(tail -n 3 out | awk '{ print $1 }' | xargs)" = "bloom stable exact" ]
  # Exact is: no error of either kind, and none predicted.
  [ "$(awk '/^exact/ { print $(NF - 5) + $(NF - 4) + $(NF - 3) + $(NF - 2) + $(NF - 1) }' out)" -eq 0 ]
  # What is not of equal size says so.
  tail -n 1 out | grep -qE '^exact +[0-9,]+ \((x [0-9]+|\+[0-9]+ %)\) '
  sed -n 5,6p out | grep -vq '%'
}

@test "JSON: the stream and the same for every filter" {
  sluice compare --stats json --stream uniform --records 50k --distinct 40% --seed 5 --memory 16KiB \
    --filter bloom --filter none --filter growing >out
  ask '.stream == {source: "uniform", generated: true, distinct_share: 0.4, seed: 5,
       records: 50000, distinct: 20000, duplicates: 30000, unkeyed: 0, interrupted: false,
       truth_bytes: 1572864, most_keys: 20000, memory: 16384}'
  ask '[.filters[].filter] == ["bloom", "none", "growing"]'
  ask '.filters[0] | .false_positives > 0 and .false_negatives == 0 and .bytes > 16000 and .bytes <= 16384 and
       .bits_per_key == (.bytes * 8 / 20000) and .false_positive_rate == (.false_positives / 20000)'
  ask '.filters[1] | .false_positives == 0 and .false_negatives == 30000 and
       .false_negative_rate == 1'
  ask '.filters[2] | .false_negatives == 0'
  ask 'all(.filters[]; .records_per_second > 0 and has("predicted_fpr"))'
}

@test "the same seed gives the same numbers, another one others" {
  for shape in uniform zipf power bursty; do
    for seed in 1 1 2; do
      sluice compare --stats json --stream $shape --records 30k --seed $seed --memory 4KiB >out.$seed.new
      if [ -e out.$seed ]; then
        diff <(without_rates out.$seed) <(without_rates out.$seed.new)
      fi
      mv out.$seed.new out.$seed
    done
    ! diff -q <(without_rates out.1) <(without_rates out.2) || fail "$shape: seeds make no difference"
    rm out.1 out.2
  done
}

@test "the truth of a file is what awk finds" {
  lines_of 20k >input
  sluice compare --stats json --filter exact --filter none input >out
  distinct=$(awk '!seen[$0]++' input | wc -l)
  ask ".stream.distinct == $distinct and .stream.records == 20000 and .stream.source == \"input\""
  ask '.filters[0] | .false_positives == 0 and .false_negatives == 0'
  ask ".filters[1].false_negatives == 20000 - $distinct"
  sluice compare --stats json --filter exact --filter none <input >piped
  diff <(without_rates out | jq 'del(.stream.source)') <(without_rates piped | jq 'del(.stream.source)')
}

@test "keys of CSV, JSON and lines" {
  printf 'id,x\n1,a\n2,b\n1,c\n' >input.csv
  sluice compare --stats json --csv --key id --filter exact input.csv >out
  ask '.stream | .records == 3 and .distinct == 2'
  printf '{"id":1,"x":2}\n{"id":1.0}\n{"no":1}\n' >input.json
  sluice compare --stats json --ndjson --key /id --filter exact input.json >out
  ask '.stream | .records == 2 and .distinct == 1 and .unkeyed == 1'
  printf 'a 1\nb 1\n' >input
  sluice compare --stats json --key 2 --filter exact input >out
  ask '.stream | .records == 2 and .distinct == 1'
}

@test "windows: their filters keep their promise, others are measured all the same" {
  sluice compare --stats json --stream uniform --records 100k --window 5k --filter cohort --filter exact \
    --filter growing >out
  ask '.stream.window == 5000 and .stream.distinct > 50000'
  ask 'all(.filters[0:2][]; .false_positives + .false_negatives == 0 and .by_slack > 0)'
  ask '.filters[2] | .false_positives > 1000 and .by_slack == 0'
  # Without a name, the usual ones.
  sluice compare --stats json --stream power --records 10k --window 5k >out
  ask '[.filters[].filter] == ["growing", "bloom", "cohort", "reservoir", "stable"]'
  sluice compare --stats json --stream power --records 10k >out
  ask '[.filters[].filter] == ["growing", "bloom", "reservoir", "stable"]'
}

@test "windows of time: made up at a pace, or by the times of a file's records" {
  sluice compare --stats json --stream uniform --records 100k --window 10s --rate 1k/s --memory 128KiB \
    --filter cohort --filter apbf --filter exact --filter bloom >out
  ask '.stream | .window == 10 and .window_kind == "time" and .rate == 1000 and .most_keys <= 10000
       and .most_keys > 5000 and .late == 0 and .disbelieved == 0'
  ask 'all(.filters[0:2][]; .bytes <= 131072 and .memory_share > 0.95 and .false_negatives == 0 and
       .false_positive_rate < 1e-3)'
  ask '.filters[2] | .false_positives + .false_negatives == 0'
  ask '.filters[3] | .false_positives > 5000'
  for second in 0 5 8 17 18 3 19 900 28; do echo "{\"k\":1,\"t\":$second}"; done >events
  sluice compare --stats json --ndjson --key /k --event-time /t --window 10s --filter exact \
    --filter none events >out
  # 0 and 17 are distinct, as is 28; 3 is late; one alone at 900 is not believed.
  ask '.stream | .records == 7 and .distinct == 3 and .late == 1 and .disbelieved == 1'
  ask '.filters[0] | .false_positives + .false_negatives == 0'
  ask '.filters[1].false_negatives == 4'
  # As dedup itself judges them, but for that one.
  grep -v 900 events | sluice dedup --json --key /k --event-time /t --window 10s --filter exact \
    --stats json 2>err >/dev/null
  [ "$(stat_of '[.distinct, .duplicates, .late] | join(" ")')" = "3 4 1" ]
  # The present hour, and a time in CSV.
  printf 'when,id\n2026-01-01T00:10:00Z,a\n2026-01-01T00:50:00Z,a\n2026-01-01T01:01:00Z,a\n' >hours
  sluice compare --stats json --csv --key id --event-time when --window hour --filter cohort hours >out
  ask '.stream | .window_kind == "landmark" and .distinct == 2 and .duplicates == 1'
}

@test "several files are one stream" {
  lines_of 5k 1 >one
  lines_of 5k 1 >two
  sluice compare --stats json --filter exact one two >out
  distinct=$(awk '!seen[$0]++' one | wc -l)
  ask ".stream | .source == \"one and 1 more\" and .records == 10000 and .distinct == $distinct"
  printf 'id,x\n1,a\n' >one.csv
  printf 'id,x\n1,b\n2,c\n' >two.csv
  sluice compare --stats json --csv --key id --filter exact one.csv two.csv >out
  ask '.stream | .records == 3 and .distinct == 2'
  printf 'x,id\n' >other.csv
  refused 1 compare --csv --key id one.csv other.csv
  says "other.csv: its header"
  printf 'a,1\nb,1\n' >fields
  sluice compare --stats json --key 2 --delimiter , --filter exact fields >out
  ask '.stream.distinct == 1'
}

@test "SIGINT prints what was found so far and exits 130" {
  mkfifo feed
  start compare --stats json --filter exact --filter none feed
  exec 7>feed
  # A pipe holds a megabyte at most: when all is written, most is read.
  lines_of 200k >&7
  kill -INT "$pid"
  ends_with 130
  exec 7>&-
  ask '.stream | .interrupted and .records > 100000 and .records <= 200000'
  ask '.stream.duplicates == .filters[1].false_negatives and .stream.duplicates > 20000'
  grep -q 'warning: interrupted: these are the numbers of the first [0-9,]* records' err
  rm out
  start compare --stream zipf --records 2G --filter none
  eventually catches_term "$pid"
  kill -TERM "$pid"
  ends_with 143
  grep -q '^zipf: ' out
}

@test "filters that forget are shown with both errors, and what they are says so" {
  sluice compare --stats json --stream uniform --records 100k --memory 16KiB --filter stable \
    --filter reservoir --filter bloom >out
  ask 'all(.filters[0:2][]; .may_forget and .false_negatives > 1000 and .false_negative_rate ==
       .false_negatives / 50000)'
  ask '.filters[2].may_forget | not'
  ask '.stream.truth_bytes >= 48 * .stream.distinct'
}

@test "a plot is an SVG with both axes named and every filter in its legend" {
  command -v gnuplot >/dev/null || skip "gnuplot is not installed"
  sluice compare --stream bursty --records 300k --memory 32KiB --filter bloom --filter stable \
    --filter exact --plot "it's a plot.svg" >out
  grep -q '<svg' "it's a plot.svg"
  grep -q '</svg>' "it's a plot.svg"
  for text in 'thousands of records' 'false positives (share of the distinct)' \
    'false negatives (share of the duplicates)' 'bloom' 'stable' 'exact (none)'; do
    grep -qF "$text" "it's a plot.svg" || fail "'$text' is not in the plot"
  done
  # Nor does a stream without a record or an error stop it.
  sluice compare --filter exact --plot empty.svg /dev/null >out
  grep -q '</svg>' empty.svg
}

@test "a plot that cannot be drawn is refused before anything is read" {
  refused 1 compare --stream zipf --records 1k --plot /nowhere/plot.svg
  says "/nowhere/plot.svg"
  lines_of 10 >input
  cp input before
  refused 2 compare --plot input input
  says "--plot 'input' is also the input"
  cmp before input
  mkdir nothing
  run -1 --separate-stderr env PATH="$PWD/nothing" "$SLUICE" compare --stream zipf --records 1k --plot p.svg
  says "gnuplot-nox"
  [ ! -e p.svg ]
}

@test "what cannot be is refused in a sentence" {
  lines_of 10 >input
  refused 2 compare --stream zipf input
  says "'input'" "give one of them"
  refused 2 compare --records 10 input
  says "--records needs --stream"
  refused 2 compare --distinct 10% input
  says "--distinct needs --stream"
  refused 2 compare --stream normal
  says "uniform, zipf, power or bursty"
  refused 2 compare --stream zipf --distinct 0
  says "--distinct 0"
  refused 2 compare --stream zipf --records 0
  says "--records 0"
  refused 2 compare --stream zipf --key 1
  says "--key"
  refused 2 compare --window 10m input
  says "--event-time FIELD" "--window 1M"
  refused 2 compare --key 1 --window 10m --event-time 2 --memory 1MiB input
  says "--rate"
  refused 2 compare --key 1 --event-time 2 input
  says "--event-time needs a window of time"
  refused 2 compare --window 10 --rate 1k/s input
  says "--rate needs a window of time"
  refused 2 compare --stream zipf --window 10m --rate 50
  says "--rate '50' is no rate"
  refused 2 compare --stream zipf --window 10m --rate 0/s
  says "--rate 0"
  refused 2 compare --stream zipf --window 10m --event-time 2
  says "--event-time"
  refused 2 compare --time-format ms input
  says "--time-format needs --event-time"
  refused 2 compare --delimiter , input
  says "--delimiter"
  refused 2 compare --stream zipf --window 10m --memory 1KiB --filter cohort
  says "does not hold a window of 600,000 keys in 1 KiB"
  refused 1 compare input /nowhere/input
  says "/nowhere/input"
  refused 2 compare --stream zipf --filter blom
  says "there is no filter 'blom'"
  refused 2 compare --stream zipf --filter bloom,probe=3
  says "probe"
  refused 2 compare --stream zipf --memory 64M
  says "--memory"
  refused 2 compare --stream zipf --expect 0
  says "--expect 0"
  refused 2 compare --csv --ndjson input
  says "exclude each other"
  refused 2 compare --no-header input
  says "--csv or --tsv"
  refused 2 compare --csv --key nothing input
  says "--key 'nothing'"
  refused 1 compare /nowhere/input
  says "/nowhere/input"
}

@test "what every filter says itself cannot be planned" {
  refused 2 compare --stream uniform --records 1k --filter bloom,keys=10 --expect 20
  says "keys=10" "--expect says 20: give one of them"
  sluice compare --stream uniform --records 1k --filter bloom,keys=10 --filter bloom --expect 20 >out
  sluice compare --stream uniform --records 1k --filter bloom,keys=20 --expect 20 >out
}

@test "one record is one record" {
  echo a >one
  sluice compare one >out
  head -n 1 out | grep -qF 'one: 1 record, 1 distinct, 0 duplicates'
  sluice count one >out
  head -n 1 out | grep -qxF 'one: 1 record'
  sluice dedup --stats none --seed 1 --state s one >out
  echo b | sluice dedup --stats none --seed 1 --state t >out
  sluice merge s t -o u >out
  [ "$(grep -c '  1 key   predicted' out)" -eq 2 ]
  grep -q '  2 keys  predicted' out
}
