#!/usr/bin/env bats
# Least cost: --cost-lost and its kin, priors from fields, tables and the stream, --posterior.
load helper

# A count window of 16-bit fingerprints, which takes a strange key for a known one now and then.
window=(--window 4096 --filter 'cohort,slot=16' --seed 1)

# uniform COUNT: "key number cost prior", 16,384 keys that come alike.
uniform() {
  awk -v count="$1" 'BEGIN {
    srand(7)
    for (i = 1; i <= count; ++i) print "k" int(rand() * 16384), i, 1 + 9 * rand(), 1 / 16384
  }'
}

# errors: "lost passed" of ./out against ./input in a window of 4096 deliveries, by definition.
errors() {
  awk '
    NR == FNR { passed[$2] = 1; next }
    {
      inside = $1 in last && position - last[$1] < 4096
      if ($2 in passed) { duplicates += inside; last[$1] = ++position }
      else lost += !inside
    }
    END { print lost + 0, duplicates + 0 }' out input
}

@test "costs turn verdicts: fewer events are lost, and some duplicates pass" {
  uniform "$(count 60000 400000)" >input
  sluice dedup "${window[@]}" -k 1 --stats json input >out 2>err
  read -r lost duplicates <<<"$(errors)"
  [[ $duplicates -eq 0 && $lost -gt 200 ]]
  [[ $(stat_of .inference) == null ]]

  sluice dedup "${window[@]}" -k 1 --cost-lost 3 --prior-field 4 --stats json input >out 2>err
  read -r lost_now duplicates_now <<<"$(errors)"
  echo "filter: $lost lost; least cost: $lost_now lost, $duplicates_now passed"
  [[ $lost_now -lt $lost && $duplicates_now -gt 0 ]]
  [[ $((3 * lost_now + duplicates_now)) -lt $((3 * lost * 8 / 10)) ]]
  [[ $(stat_of .inference.promise) == "least cost" ]]
  [[ $(stat_of .inference.priors) == field ]]
  [[ $(stat_of '.inference.passed > 0 and .inference.expected_cost < .inference.filter_cost') == true ]]
  # What it says it costs is what it costs.
  stat_of '.inference.expected_cost' >expected
  awk -v cost="$((3 * lost_now + duplicates_now))" '{ exit !($1 > cost * 0.8 && $1 < cost * 1.2) }' expected

  # A lost event that costs nothing: the filter's verdicts. A duplicate that may not pass: only what
  # has left the window for certain does.
  sluice dedup "${window[@]}" -k 1 --stats none input >filter.out
  sluice dedup "${window[@]}" -k 1 --cost-lost 0 --prior-field 4 --stats none input >out
  cmp out filter.out
  sluice dedup "${window[@]}" -k 1 --cost-duplicate 1e12 --prior-field 4 --stats none input >out
  read -r lost_now duplicates_now <<<"$(errors)"
  [[ $duplicates_now -eq 0 && $lost_now -le $lost ]]
}

@test "priors are learnt where none are given" {
  uniform "$(count 100000 400000)" >input
  sluice dedup "${window[@]}" -k 1 --stats none input >out
  read -r lost _ <<<"$(errors)"
  sluice dedup "${window[@]}" -k 1 --cost-lost 20 --stats json input >out 2>err
  read -r lost_now duplicates_now <<<"$(errors)"
  echo "filter: $lost lost; least cost: $lost_now lost, $duplicates_now passed"
  [[ $((20 * lost_now + duplicates_now)) -lt $((20 * lost)) ]]
  [[ $(stat_of .inference.priors) == learnt ]]
  sluice dedup "${window[@]}" -k 1 --cost-lost 20 --learn-priors --stats none input | cmp - out
}

@test "each record has its costs, and one without them is judged as stated" {
  uniform "$(count 60000 400000)" >input
  # An event of price 0 is never worth a duplicate; one in two is.
  awk '{ print $1, $2, $2 % 2 * 50, $4 }' input >priced
  sluice dedup "${window[@]}" -k 1 --cost-lost-field 3 --prior-field 4 --posterior \
    --duplicates held --stats json priced >out 2>err
  awk '$2 % 2 == 0 && $5 > 0 { print "passed:", $0; bad = 1 } $2 % 2 && $5 > 0 { ++good }
    END { exit bad || !good }' out
  awk '{ limit = $3 / ($3 + 1) } $5 < limit - 1e-4 { print "held:", $0; exit 1 }' held
  [[ $(stat_of '.inference.cost_lost_field + "," + (.inference.cost_lost|tostring)') == 3,null ]]
  [[ $(stat_of .inference.records_without_cost) == 0 ]]

  # Missing, no number, below 0: the filter judges, or the fixed cost holds.
  awk '{ $3 = $2 % 3 == 0 ? "?" : $2 % 3 == 1 ? "-1" : "1e999"; print }' input >unpriced
  sluice dedup "${window[@]}" -k 1 --stats none unpriced >filter.out
  sluice dedup "${window[@]}" -k 1 --cost-lost-field 3 --prior-field 4 --stats json unpriced >out 2>err
  cmp out filter.out
  [[ $(stat_of '.inference.records_without_cost == .records and .inference.passed == 0') == true ]]
  sluice dedup "${window[@]}" -k 1 --cost-lost-field 3 --cost-lost 3 --prior-field 4 --stats none \
    unpriced | cut -d ' ' -f 2 >out
  sluice dedup "${window[@]}" -k 1 --cost-lost 3 --prior-field 4 --stats none input |
    cut -d ' ' -f 2 | cmp - out
  # What a duplicate costs works the other way.
  sluice dedup "${window[@]}" -k 1 --cost-lost 1 --cost-duplicate-field 3 --prior-field 4 \
    --stats json priced >/dev/null 2>err
  [[ $(stat_of '.inference.passed > 0') == true ]]

  printf '%s\n' 'a 1 2' 'b x 2' >strict
  run -1 --separate-stderr sluice dedup "${window[@]}" -k 1 --strict --cost-lost-field 2 \
    --stats none strict
  [[ $output == 'a 1 2' ]]
  says "strict: record 2: a cost or a prior cannot be read in 'b x 2'"
}

@test "a table of priors says what the field says" {
  uniform "$(count 60000 400000)" >input
  awk 'BEGIN { for (i = 0; i < 16384; ++i) print "k" i "\t6.103515625e-05" }' >table
  sluice dedup "${window[@]}" -k 1 --cost-lost 3 --prior-field 4 --stats none input >field.out
  sluice dedup "${window[@]}" -k 1 --cost-lost 3 --prior-table table --stats json input >out 2>err
  cmp out field.out
  [[ $(stat_of '.inference.priors + .inference.promise') == "tableleast cost" ]]
  [[ $(stat_of .inference.prior_table_keys) == 16384 ]]
  # Keys that it lacks are judged by the filter, unless the record speaks for itself.
  head -n 100 table >short
  sluice dedup "${window[@]}" -k 1 --cost-lost 3 --prior-table short --stats json input >out 2>err
  [[ $(stat_of '.inference.without_prior > 50 * .inference.inferred') == true ]]
  sluice dedup "${window[@]}" -k 1 --cost-lost 3 --prior-table short --prior-field 4 --stats none \
    input | cmp - field.out
  # JSON and csv keys, of one part and of two.
  awk '{ printf "{\"k\":\"%s\",\"n\":%d,\"two\":2}\n", $1, $2 }' input >input.json
  awk '{ print "\"" $1 "\"\t" $2 }' table >table.json
  awk '{ print "2\t\"" $1 "\"\t" $2 }' table >two.json
  cut -d ' ' -f 2 field.out >want
  for run in '--key /k --prior-table table.json' '--key /two,/k --prior-table two.json'; do
    # shellcheck disable=SC2086  # several words
    sluice dedup "${window[@]}" --json $run --cost-lost 3 --stats json input.json 2>err >out
    [[ $(stat_of '.inference.passed > 0 and .inference.without_prior == 0') == true ]]
  done
  awk 'BEGIN { print "a,b" } { print "\"" $1 "\",x" }' input >input.csv
  awk '{ print "x\t" $0 }' table >two
  sluice dedup "${window[@]}" --csv --key b,a --prior-table two --cost-lost 3 --stats json \
    input.csv 2>err >out
  [[ $(stat_of '.inference.passed > 0 and .inference.without_prior == 0') == true ]]
}

@test "a table that is none is refused, with the line" {
  echo a >input
  refuse_table() {
    printf '%b' "$1" >table
    shift
    refused 2 dedup "${window[@]}" -k 1 --cost-lost 2 --prior-table table input
    says "$@"
  }
  refuse_table 'a\t0.1\nb 0.2\n' 'table:2: there is no tab'
  refuse_table 'a\t0.1\nb\t1.5\n' "table:2: '1.5' is no probability"
  refuse_table 'a\t0\n' 'table:1:' 'above 0 and below 1'
  refuse_table 'a\t0.1x\n' 'table:1:'
  refuse_table 'a\t0.1\nb\t0.1\na\t0.2' 'table:3: this key has a prior already'
  refuse_table 'a\tb\t0.1\n' 'table:1: the key has 2 fields, and --key takes 1'
  refuse_table "$(head -c 1100000 /dev/zero | tr '\0' x)" 'table:1: the line is longer than 1 MiB'
  printf 'a\t0.1\n' >table
  refused 2 dedup --json --key /a --window 10 --cost-lost 2 --prior-table table input
  says 'table:1: the key is not JSON' 'strings in quotes'
  refused 1 dedup "${window[@]}" -k 1 --cost-lost 2 --prior-table nowhere input
  says nowhere
  refused 2 dedup "${window[@]}" -k 1 --cost-lost 2 --prior-table -
  says '--prior-table - and the input are both standard input'
  for output in --output --duplicates; do
    refused 2 dedup "${window[@]}" -k 1 --cost-lost 2 --prior-table table "$output" ./table input
    says "$output './table' is also --prior-table"
  done
  holds table 'a\t0.1\n'
}

@test "--posterior is a last field, or a member of JSON" {
  local few=(--window 100 --stats none --seed 1 --prior-field)
  printf '%s\n' 'a .01' 'b .01' 'a .01' 'c' 'a' >input
  sluice dedup "${few[@]}" 2 -k 1 --posterior --duplicates held input >out
  holds out 'a .01\t0\nb .01\t0\nc\t0\n'
  holds held 'a .01\t1\na\t-\n'
  printf 'a,.01\na,.01' | sluice dedup "${few[@]}" 2 -k 1 -d , --posterior --invert >out
  holds out 'a,.01,1'
  tr '\n' '\0' <input | sluice dedup "${few[@]}" 2 -k 1 -0 --posterior >out
  holds out 'a .01\t0\0b .01\t0\0c\t0\0'
  printf '%s\r\n' id,p 'a,.01' '"b, c",.01' 'a,.01' 'a,' d '"x"y,1' >input
  sluice dedup "${few[@]}" p --csv --key id --posterior --duplicates held input >out
  holds out 'id,p,sluice_posterior\r\na,.01,0\r\n"b, c",.01,0\r\nd,0\r\n"x"y,1\r\n'
  holds held 'id,p,sluice_posterior\r\na,.01,1\r\na,,\r\n'
  printf '%s\n' '{"id":1,"p":0.01}' ' { "id":1, "p":"0.01" } ' '{"id":1}' '{}' '[1]' '{"id":' >input
  sluice dedup "${few[@]}" /p --json --key /id --posterior --duplicates held input >out
  holds out '{"id":1,"p":0.01,"sluice_posterior":0}\n{"sluice_posterior":null}\n[1]\n{"id":\n'
  holds held ' { "id":1, "p":"0.01","sluice_posterior":1}\n{"id":1,"sluice_posterior":null}\n'
  # A record of which only the time is bad is whole.
  printf '%s\n' id,at,p 'a,1,.01' 'a,soon,.01' '"x"y,1,.01' >input
  sluice dedup --window 10s --event-time at --stats none --csv --key id --prior-field p --posterior input >out
  holds out 'id,at,p,sluice_posterior\na,1,.01,0\na,soon,.01,\n"x"y,1,.01\n'
  printf '%s\n' '{"id":1,"at":1}' '{"id":1,"at":"soon"}' '{"id":1,"at":' >input
  sluice dedup --window 10s --event-time /at --stats none --json --key /id --prior-field /p --posterior input >out
  holds out '{"id":1,"at":1,"sluice_posterior":0}\n{"id":1,"at":"soon","sluice_posterior":null}\n{"id":1,"at":\n'
  # Every line that was JSON still is, and a second run reads what the first wrote.
  printf '%s\n' '{"id":1,"p":0.01}' '{"id":2,"p":0.01}' >input
  sluice dedup "${few[@]}" /p --json --key /id --posterior input | jq -c .sluice_posterior >out
  holds out '0\n0\n'
  # Without costs the verdicts are the filter's.
  uniform 30000 >input
  sluice dedup "${window[@]}" -k 1 --stats none input >filter.out
  sluice dedup "${window[@]}" -k 1 --posterior --prior-field 4 --stats json input 2>err |
    cut -f 1 | cmp - filter.out
  [[ $(stat_of .inference.promise) == "the filter's" ]]
}

@test "a posterior of x is right x of the time" {
  # Within .03 of all that the filter takes for duplicates, in 10 bins, at either anchor; in a window
  # of time within .05. The truth is told by definition from what came out.
  uniform "$(count 100000 400000)" >input
  calibrated() {
    awk -v tolerance="$1" -v refresh="$2" -v timed="$3" '
      FILENAME == "out" { posterior[$2] = $NF; passed[$2] = 1; next }
      FILENAME == "held" { posterior[$2] = $NF; passed[$2] = 0; next }
      {
        now = timed ? $2 : position
        inside = $1 in last && now - last[$1] < 4096
        p = posterior[$2]
        if (FNR > 20000 && p > 0) { bin = int(p * 10); ++asked; said[bin] += p; truth[bin] += inside }
        if (refresh || passed[$2]) { last[$1] = timed ? $2 : position; ++position }
      }
      END {
        for (bin in said) { d = truth[bin] - said[bin]; error += d < 0 ? -d : d }
        print asked, error / asked
        exit !(asked > 5000 && error / asked < tolerance)
      }' out held input
  }
  sluice dedup "${window[@]}" -k 1 --posterior --prior-field 4 --duplicates held --stats none input >out
  calibrated .03 0 0
  sluice dedup "${window[@]}" -k 1 --posterior --prior-field 4 --cost-lost 3 --duplicates held \
    --stats none input >out
  calibrated .03 0 0
  sluice dedup "${window[@]}" -k 1 --posterior --prior-field 4 --refresh --duplicates held \
    --stats none input >out
  calibrated .03 1 0
  # One record per second.
  sluice dedup --window 4096s --event-time 2 --time-format s --filter cohort,slot=16 --rate 8k/h \
    --seed 1 -k 1 --posterior --prior-field 4 --cost-lost 3 --duplicates held --stats none input >out
  calibrated .05 0 1
}

@test "windows of time by arrival, and sets, are inferred from, too" {
  uniform 30000 >input
  sluice dedup --window 1h --arrival-time --filter timing,fpr=0.3 --rate 9k/h --seed 1 -k 1 --cost-lost 30 \
    --stats json input 2>err >out
  [[ $(stat_of '.inference.inferred > 1000 and .inference.priors == "learnt"') == true ]]
  for layout in classic blocked; do
    sluice dedup --filter "bloom,layout=$layout,bytes=4KiB" --seed 1 -k 1 --cost-lost 100 \
      --prior-field 4 --stats json input 2>err >out
    [[ $(stat_of '.inference.passed > 100 and .inference.expected_cost < .inference.filter_cost') == true ]]
    sluice dedup --filter "bloom,layout=$layout,bytes=4KiB" --seed 1 -k 1 --stats none input >filter.out
    [[ $(wc -l <out) -gt $(wc -l <filter.out) ]]
  done
}

@test "a state goes from run to run, with costs and without" {
  uniform 40000 >input
  head -n 20000 input >first
  tail -n 20000 input >second
  local run=("${window[@]}" -k 1 --state state --stats none)
  sluice dedup "${run[@]}" --cost-lost 3 --prior-field 4 first >out
  sluice inspect state >/dev/null
  cp state kept
  sluice dedup "${run[@]}" --cost-lost 3 --prior-field 4 second >>out
  read -r lost duplicates <<<"$(errors)"
  cp kept state
  sluice dedup "${run[@]}" second >plain.out
  sluice dedup "${window[@]}" -k 1 --cost-lost 3 --prior-field 4 --stats none input >out
  read -r lost_at_once duplicates_at_once <<<"$(errors)"
  echo "in two runs $lost lost, $duplicates passed; in one $lost_at_once and $duplicates_at_once"
  [[ $(wc -l <plain.out) -lt 20000 ]]
  # Rates are measured anew: much the same.
  awk -v a="$((3 * lost + duplicates))" -v b="$((3 * lost_at_once + duplicates_at_once))" \
    'BEGIN { exit !(a < b * 1.15 && a > b * 0.85) }'
}

@test "what makes no sense is refused in one sentence" {
  echo a >input
  refused 1 dedup input --window 1k --cost-lost 3 --prior-table missing
  says "--prior-table 'missing'"
  refuse() {
    refused 2 dedup "$@" input
  }
  refuse --window 10 --cost-lost x
  says "--cost-lost 'x' is not a cost"
  refuse --window 10 --cost-duplicate=-1
  says '--cost-duplicate' 'from 0 to 1e+12'
  refuse --window 10 --cost-lost 0 --cost-duplicate 0
  says 'both 0'
  refuse --window 10 --prior-field 1
  says '--prior-field needs --cost-lost'
  refuse --window 10 --learn-priors
  says '--learn-priors needs'
  refuse --window 10 --cost-lost 1 --learn-priors --prior-field 1
  says 'one or the other'
  refuse --window 10 --cost-lost 1 --cost-lost-field x
  says "--cost-lost-field 'x' is no field number"
  refuse --window 10 --cost-lost 1 --cost-lost-field 1,2
  says '--cost-lost-field' 'one'
  refuse --window 10 --filter apbf --cost-lost 1
  says "'apbf'" cohort timing
  refuse --window day --arrival-time --cost-lost 1
  says 'every hour or day'
  refuse --cost-lost 1
  says "'growing'" bloom --expect --window
  refuse --posterior --filter exact
  says "'exact'" bloom
  echo 'a,b' >input
  refused 2 dedup --csv --window 10 --cost-lost-field price --stats none input
  says "--cost-lost-field 'price'"
}
