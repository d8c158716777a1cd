#!/usr/bin/env bats
# --window: what is remembered, what is forgotten, and when; by count and by time.
load helper

# The reference filter where this build has it, since it errs neither way; our default otherwise.
window_filter() {
  if sluice filters | grep -q '^exact-window:'; then echo exact-window; else echo cohort; fi
}

# The statistics of a window, with a fixed hash: no error of chance from run to run.
seeded=(--stats json --seed 1)

# keys_of COUNT UNIVERSE: lines "key number", with keys drawn from so many.
keys_of() {
  awk -v count="$1" -v universe="$2" 'BEGIN {
    srand(7)
    for (i = 1; i <= count; ++i) print "k" int(rand() * universe), i
  }'
}

# counted SIZE REFRESH: whether ./out is what a window of SIZE may let through of ./input, by
# definition. The slack is what the run says.
counted() {
  awk -v size="$1" -v refresh="$2" -v slack="$(stat_of .window.slack)" '
    NR == FNR { passed[$2] = 1; next }
    {
      duplicate = !($2 in passed)
      age = $1 in last ? position - last[$1] : -1
      if (age >= 0 && age < size) { ++inside; if (!duplicate) wrong = wrong " passed:" FNR }
      if (age < 0 || age >= size * (1 + slack) + 0.01) {
        if (age >= 0) ++outside
        if (duplicate) wrong = wrong " held:" FNR
      }
      if (refresh || !duplicate) last[$1] = ++position
    }
    END {
      if (wrong != "") { print substr(wrong, 1, 200); exit 1 }
      if (inside < 100 || (size < 4000 && outside < 100)) { print "too little", inside, outside; exit 1 }
    }' out input
}

@test "by count: the last n deliveries are remembered, and what is older than slack is not" {
  filter=$(window_filter)
  keys_of "$(count 20000 400000)" 3000 >input
  for size in 1 50 1000 10k; do
    sluice dedup "${seeded[@]}" --key 1 --window "$size" --filter "$filter" input >out 2>err
    [ "$(stat_of '.window.kind, .window.anchor' | xargs)" = "count delivered" ]
    if [[ $size != 1 && $size != 10k ]]; then counted "$size" 0; fi
  done
  # A window that holds every key is no window: each passes once.
  cut -d' ' -f1 input | sort -u | wc -l >want
  wc -l <out | diff want -
}

@test "by count with --refresh: the last n arrivals" {
  filter=$(window_filter)
  keys_of "$(count 20000 400000)" 3000 >input
  for size in 50 1000; do
    sluice dedup "${seeded[@]}" --key 1 --window "$size" --refresh --filter "$filter" input >out 2>err
    [ "$(stat_of '.window.kind, .window.anchor' | xargs)" = "count refreshed" ]
    counted "$size" 1
  done
}

@test "by count: the default filter keeps to it, too" {
  keys_of "$(count 20000 400000)" 3000 >input
  sluice dedup "${seeded[@]}" --key 1 --window 1000 input >out 2>err
  [ "$(stat_of .filter.name)" = cohort ]
  counted 1000 0
  sluice dedup "${seeded[@]}" --key 1 --window 1000 --refresh input >out 2>err
  counted 1000 1
}

@test "a window of one: only the last delivery counts" {
  printf 'a\na\nb\nb\na\nb\nc\nd\ne\na\n' >input
  sluice dedup --stats none --window 1 input >out
  # A key may stay for a generation more: a and b may or may not pass in between.
  [ "$(head -n 1 out)" = a ]
  [ "$(grep -c e out)" = 1 ]
  [ "$(tail -n 1 out)" = a ]
}

# A stream of times, in milliseconds from 2026-01-01: mostly forward, some records late, by less and
# by more than a window of 20 s. "key milliseconds number"
make_timed() {
  awk -v count="$1" 'BEGIN {
    srand(11)
    for (i = 1; i <= count; ++i) {
      now += int(rand() * 20)
      if (rand() < 0.002) now += int(rand() * 15000)
      time = now
      if (i > 1000 && rand() < 0.2) time -= int(rand() * 25000)
      if (time < 0) time = 0
      print "k" int(rand() * 2000), time, i
    }
  }'
}

# as FORMAT: the stream of ./timed in that form. 2026-01-01 is second 1767225600.
as() {
  awk -v format="$1" '
    function iso(ms, zone,   s) {
      s = int(ms / 1000)
      return sprintf("2026-01-01%s%02d:%02d:%02d.%03d%s", zone == "" ? " " : "T", int(s / 3600),
                     int(s / 60) % 60, s % 60, ms % 1000, zone)
    }
    BEGIN { if (format ~ /csv/) print "key,time,number" }
    {
      ms = sprintf("%d%03d", 1767225600 + int($2 / 1000), $2 % 1000)
      seconds = sprintf("%d.%03d", 1767225600 + int($2 / 1000), $2 % 1000)
    }
    format == "s" { print $1, seconds, $3 }
    format == "ms" { print $1, ms, $3 }
    format == "us" { print $1, ms "000", $3 }
    format == "ns" { print $1, ms "000000", $3 }
    format == "csv" { print $1 "," iso($2, "Z") "," $3 }
    format == "csv-blank" { print $1 "," iso($2, "") "," $3 }
    format == "json" { print "{\"number\":" $3 ",\"at\":{\"time\":" ms "},\"key\":\"" $1 "\"}" }
    format == "json-iso" { print "{\"number\":" $3 ",\"at\":{\"time\":\"" iso($2, "+00:00") "\"},\"key\":\"" $1 "\"}" }
  ' timed
}

# numbers: the records' numbers of an output in any of these forms.
numbers() {
  sed -nE 's/^\{"number":([0-9]+).*/\1/p; s/^k[0-9]+[, ].*[, ]([0-9]+)$/\1/p' "$1"
}

# kept_time REFRESH: whether ./passed and ./late, numbers, are what a window of 20 s may make of
# ./timed: age below it inside, of window and slack outside, a window or more behind now late.
kept_time() {
  awk -v refresh="$1" -v size=20000 -v slack="$(stat_of .window.slack)" '
    FILENAME == "passed" { passed[$1] = 1; next }
    FILENAME == "late" { late[$1] = 1; next }
    {
      if ($2 > now) now = $2
      if (($3 in late) != ($2 <= now - size)) wrong = wrong " late:" $3
      if ($3 in late) { ++lates; next }
      duplicate = !($3 in passed)
      age = $1 in last ? now - last[$1] : -1
      if (age >= 0 && age < size) { ++inside; if (!duplicate) wrong = wrong " passed:" $3 }
      if (age < 0 || age >= size * (1 + slack)) { ++outside; if (duplicate) wrong = wrong " held:" $3 }
      if ((refresh || !duplicate) && !($1 in last && last[$1] > $2)) last[$1] = $2
    }
    END {
      if (wrong != "") { print substr(wrong, 1, 200); exit 1 }
      if (inside < 100 || outside < 100 || lates < 10) { print "too little"; exit 1 }
    }' passed late timed
}

@test "by event time: what is inside stays, what is outside goes, what is late is marked" {
  filter=$(window_filter)
  make_timed "$(count 8000 200000)" >timed
  as ms >input
  for refresh in 0 1; do
    args=(--key 1 --event-time 2 --window 20s --filter "$filter" --late mark --late-output late.out)
    if ((refresh)); then args+=(--refresh); fi
    sluice dedup "${seeded[@]}" "${args[@]}" input >out 2>err
    [ "$(stat_of '.window.kind, .window.size' | xargs)" = "time 20" ]
    numbers out >passed
    numbers late.out >late
    kept_time "$refresh"
  done
}

@test "the same verdicts in every format and unit, and however the input is cut" {
  make_timed 3000 >timed
  as ms >input
  sluice dedup "${seeded[@]}" --window 20s --key 1 --event-time 2 input 2>err | numbers /dev/stdin >want
  [ -s want ]
  for form in s us ns; do
    as "$form" >input
    sluice dedup "${seeded[@]}" --window 20s --key 1 --event-time 2 input 2>err >out
    numbers out | cmp want -
    sluice dedup "${seeded[@]}" --window 20s --key 1 --event-time 2 --time-format "$form" input 2>err >out
    numbers out | cmp want -
  done
  for form in csv csv-blank; do
    as "$form" >input
    sluice dedup "${seeded[@]}" --window 20s --csv --key key --event-time time input 2>err >out
    numbers out | cmp want -
    [ "$(head -n 1 out)" = key,time,number ]
  done
  for form in json json-iso; do
    as "$form" >input
    sluice dedup "${seeded[@]}" --window 20s --json --key /key --event-time /at/time input 2>err >out
    numbers out | cmp want -
  done
  # In small writes, which a reader sees as they come.
  dd if=input bs=61 status=none | sluice dedup "${seeded[@]}" --window 20s --json --key /key --event-time /at/time 2>err >out
  numbers out | cmp want -
  # A wrong unit is another time.
  as ms >input
  sluice dedup "${seeded[@]}" --window 20s --key 1 --event-time 2 --time-format ns input 2>err >out
  run -1 cmp <(numbers out) want
}

# at SECOND KEY...: a line "KEY SECOND" each.
at() {
  local second=$1
  shift
  printf "%s $((1767225600 + second))\n" "$@"
}
by_time=(--key 1 --event-time 2)

@test "the window runs from the last delivery; with --refresh from the last arrival" {
  for second in 0 15 25 35 45 60; do at "$second" a; done >input
  sluice dedup --stats none "${by_time[@]}" --window 24s input | cut -d' ' -f2 >out
  holds out '1767225600\n1767225625\n1767225660\n'
  sluice dedup --stats none "${by_time[@]}" --window 24s --refresh input | cut -d' ' -f2 >out
  holds out '1767225600\n'
}

@test "late records: passed, dropped or marked, counted and not remembered" {
  { at 0 a && at 5 b && at 100 c && at 60 d && at 61 e && at 60 d && at 100 c; } >input
  with() { sluice dedup --stats json "${by_time[@]}" --window 40s --max-ahead 1h "$@" input 2>err | cut -d' ' -f1 | xargs; }
  [ "$(with)" = "a b c d e d" ]
  [ "$(stat_of '[.records,.distinct,.duplicates,.late,.window.late]|join(" ")')" = "7 4 1 2 2" ]
  [ "$(with --late pass --duplicates held)" = "a b c d e d" ]
  [ "$(cut -d' ' -f1 held | xargs)" = "c" ]
  [ "$(with --late drop --duplicates held)" = "a b c e" ]
  [ "$(cut -d' ' -f1 held | xargs)" = "d d c" ]
  [ "$(with --late mark --late-output late --duplicates held)" = "a b c e" ]
  [ "$(cut -d' ' -f1 late held | xargs)" = "d d c" ]
}

@test "a record without a time is passed through and counted; --strict stops" {
  printf '{"k":1,"t":1767225600}\n{"k":1}\n{"k":1,"t":"soon"}\n{"k":1,"t":1767225601}\n' >input
  sluice dedup --stats json --json --key /k --event-time /t --window 10s input >out 2>err
  [ "$(wc -l <out)" -eq 3 ]
  [ "$(stat_of '[.distinct,.duplicates,.unkeyed,.malformed]|join(" ")')" = "1 1 2 1" ]
  run -1 --separate-stderr sluice dedup --stats none --strict --json --key /k --event-time /t --window 10s input
  says "record 2: there is no /t in '{\"k\":1}'"
  printf '{"k":1}\n' | sluice dedup --stats none --json --key /k --event-time /t --window 10s 2>err >out
  grep -q -e --event-time err
}

@test "one clock a year ahead does not wipe the window; two that agree do" {
  year=31536000
  { at 0 a && at 1 b && at $year c && at 2 a && at 3 b && at 4 c; } >input
  sluice dedup --stats json "${by_time[@]}" --window 10s input 2>err | cut -d' ' -f1 | xargs >out
  holds out 'a b c\n'
  [ "$(stat_of .window.disbelieved)" = 1 ]
  { at 0 a && at 1 b && at $year c && at $((year + 1)) a && at $((year + 2)) c && at 2 b; } >input
  sluice dedup --stats json "${by_time[@]}" --window 10s input 2>err | cut -d' ' -f1 | xargs >out
  holds out 'a b c a b\n'
  [ "$(stat_of '[.window.disbelieved,.late]|join(" ")')" = "1 1" ]
  # With a wider --max-ahead the first is believed.
  { at 0 a && at 1000 b && at 1001 a; } >input
  sluice dedup --stats json "${by_time[@]}" --window 10s --max-ahead 1h input 2>err >out
  [ "$(stat_of '[.distinct,.window.disbelieved]|join(" ")')" = "3 0" ]
}

@test "the first clock of a stream is not believed against all others either" {
  { at 31536000 a && at 0 b && at 1 c && at 2 b && at 3 a; } >input
  sluice dedup --stats json "${by_time[@]}" --window 10s input 2>err | cut -d' ' -f1 | xargs >out
  holds out 'a b c a\n' # what came at the wrong time is forgotten with it
  [ "$(stat_of .late)" = 0 ]
}

@test "records far apart that come newest first are not lost" {
  { at 7200 k && at 3600 k && at 0 k; } >input
  for filter in cohort exact; do
    sluice dedup --stats json "${by_time[@]}" --window 10m --filter $filter input 2>err >out
    cmp input out
    [ "$(stat_of '[.distinct,.duplicates,.late]|join(" ")')" = "3 0 0" ]
  done
  # One at a time, through a state.
  while read -r line; do
    echo "$line" | sluice dedup --stats none "${by_time[@]}" --window 10m --state s
  done <input >out
  cmp input out
  for i in $(seq 1000 -1 1); do at $((i * 3600)) k$((i % 10)); done >input
  sluice dedup --stats json "${by_time[@]}" --window 10m --audit 1/1 input 2>err >out
  cmp input out
  [ "$(stat_of '[.audit.fpr,.audit.fnr,.audit.distinct]|join(" ")')" = "  1000" ]
}

@test "a wrong clock that is sent twice does not confirm itself" {
  year=31536000
  { at 0 a && at 1 b && at $year c && at $year c && at 2 a && at 3 d; } >input
  sluice dedup --stats json "${by_time[@]}" --window 10s --state s input 2>err | cut -d' ' -f1 | xargs >out
  holds out 'a b c c d\n'
  [ "$(stat_of '[.window.disbelieved,.late]|join(" ")')" = "2 0" ]
  # Nor with a state between the two.
  at $year c | sluice dedup --stats json "${by_time[@]}" --window 10s --state s 2>err >out
  { at 4 d && at 5 e; } | sluice dedup --stats json "${by_time[@]}" --window 10s --state s 2>err | cut -d' ' -f1 | xargs >out
  holds out 'e\n'
  [ "$(stat_of .late)" = 0 ]
}

@test "inputs that overlap in time are late, and a warning says so" {
  for i in {0..40}; do at "$i" "k$i"; done >one
  cp one two
  run -0 --separate-stderr sluice dedup --stats none "${by_time[@]}" --window 10s one two
  says "are late" "inputs overlap in time"
}

@test "many records held back by slack are worth a warning" {
  # Each key comes back exactly a window later; a table is needed, since lists have no slack.
  for day in {0..3}; do
    awk -v day="$day" 'BEGIN { for (i = 0; i < 2000; ++i) printf "k%d %d\n", i, 1767225600 + 86400 * day }'
  done >input
  run -0 --separate-stderr sluice dedup --stats none "${by_time[@]}" --window 24h input
  says "were held back a window or more after" --slack
  run -0 --separate-stderr sluice dedup --stats none --seed 1 "${by_time[@]}" --window 23h input
  [ -z "$stderr" ]
  [ "${#lines[@]}" = 8000 ]
}

@test "a run whose records are mostly late says so, and inspect shows the clock" {
  year=31536000
  { at $year c && at $((year + 1)) d && for i in 1 2 3 4 5; do at "$i" k; done; } >input
  for stats in text json none; do
    run -0 --separate-stderr sluice dedup --stats $stats "${by_time[@]}" --window 10s input
    says "5 of 7 records are late" "2027-01-01T00:00:01Z" --max-ahead "newest first"
    [ "$(grep -c "are late" <<<"$stderr")" = 1 ]
  done
  run -0 --separate-stderr sluice dedup "${by_time[@]}" --window 10s --state s input
  says "a window or more behind the latest time, 2027-01-01T00:00:01Z" "a new state"
  sluice inspect s | grep -qx '  latest time      2027-01-01T00:00:01Z'
  [ "$(sluice inspect --json s | jq -r .latest_time)" = 2027-01-01T00:00:01Z ]
  # Four of six are not enough to tell, nor is less than a tenth.
  { at $year c && at $((year + 1)) d && for i in 1 2 3 4; do at "$i" k; done; } >input
  run -0 --separate-stderr sluice dedup "${by_time[@]}" --window 10s input
  [[ "$stderr" != *"are late"* ]]
  { for i in {0..60}; do at $((year + i)) "c$i"; done && for i in {1..6}; do at "$i" k; done; } >input
  run -0 --separate-stderr sluice dedup "${by_time[@]}" --window 10s input
  [[ "$stderr" != *"are late"* ]]
  # A window that knows no time has none to show.
  seq 10 | sluice dedup --stats none --window 5 --state counted >out
  [ "$(sluice inspect --json counted | jq 'has("latest_time")')" = false ]
}

@test "inspect tells a list of a few keys from a table" {
  printf '%s\n' a b c a | sluice dedup --stats none --arrival-time --window 10m --state few >out
  sluice inspect few | grep -qx '  form             list of 3 keys, exact; becomes a table at about 513'
  run -1 grep -c "bits per key" < <(sluice inspect few)
  [ "$(sluice inspect --json few | jq -c '[.form, .listed, .table_at]')" = '["list",3,513]' ]
  seq 1000 | sluice dedup --stats none --arrival-time --window 10m --state many >out
  run -1 grep -c "  form" < <(sluice inspect many)
  sluice inspect many | grep -q "bits per key"
  [ "$(sluice inspect --json many | jq -c '[.form, .listed, .table_at]')" = '["table",0,null]' ]
}

@test "a clock that jumps back: late by less than a window is judged, by more is late" {
  { at 100 a && at 101 b && at 95 a && at 95 c && at 96 c && at 50 d && at 50 d && at 102 b; } >input
  sluice dedup --stats json "${by_time[@]}" --window 10s input 2>err | cut -d' ' -f1 | xargs >out
  holds out 'a b c d d\n'
  [ "$(stat_of .late)" = 2 ]
}

@test "a late key leaves the window by its own time" {
  { at 100 a && at 92 k && at 101 k && at 103 k; } >input
  sluice dedup --stats none "${by_time[@]}" --window 10s input | cut -d' ' -f1 | xargs >out
  holds out 'a k k\n'
}

@test "a gap of a thousand windows, and records farther apart than a window, lose nothing" {
  { at 0 a b && at 10000 a b a b && at 10001 a; } >input
  sluice dedup --stats none "${by_time[@]}" --window 10s input | cut -d' ' -f1 | xargs >out
  holds out 'a b a b\n'
  for second in 0 60 120 180 240 300; do at "$second" beat; done >input
  sluice dedup --stats none "${by_time[@]}" --window 10s input | cmp input -
  # Two at a time.
  for second in 0 60 120 180 240 300; do at "$second" beat && at $((second + 1)) beat; done >input
  [ "$(sluice dedup --stats none "${by_time[@]}" --window 10s input | wc -l)" -eq 6 ]
}

@test "hour and day start afresh" {
  { at 0 a && at 3599 a && at 3600 a && at 3601 a && at 7300 a && at 3599 b; } >input
  sluice dedup --stats json "${by_time[@]}" --window hour input 2>err | cut -d' ' -f2 >out
  holds out '1767225600\n1767229200\n1767232900\n1767229199\n'
  [ "$(stat_of '[.window.kind,.window.size,.window.slack,.late]|join(" ")')" = "landmark 3600 0 1" ]
  { at 0 a && at 86399 a && at 86400 a && at 86401 a; } >input
  sluice dedup --stats none "${by_time[@]}" --window day input | cut -d' ' -f2 >out
  holds out '1767225600\n1767312000\n'
}

@test "by arrival: what came just now is remembered" {
  printf 'a\nb\na\n' | sluice dedup --stats json --window 24h 2>err >out
  holds out 'a\nb\n'
  mkfifo feed
  start dedup --stats none --window 200ms feed
  exec 7>feed
  # Given again and again, it passes a second time when its window has run out.
  again() { echo a >&7 && [ "$(wc -l <out)" -ge 4 ]; }
  eventually again
  exec 7>&-
  ends_with 0
}

@test "standard error states how the window was read" {
  sluice dedup --window 1m /dev/null 2>err
  grep -q 'window: the last 1 minute by arrival, forgotten at most 4.2 % late' err
  sluice dedup --window 1M /dev/null 2>err
  grep -q 'window: the last 1,000,000 deliveries' err
  sluice dedup --window 10k --refresh /dev/null 2>err
  grep -q 'window: the last 10,000 arrivals' err
  sluice dedup --json --window 7d --event-time /t /dev/null 2>err
  grep -q 'window: the last 7 days by event time /t' err
  sluice dedup --window day /dev/null 2>err
  grep -q 'window: the present day (UTC) by arrival' err
}

@test "flags that do not go together are refused" {
  echo a >input
  for flag in --event-time=1 --max-ahead=1m --late=drop --rate=1k/s --slack=0.1 --npws=0.1 \
    --growth=density --refresh; do
    refused 2 dedup input "$flag"
    says "${flag%%=*}" --window
  done
  for flag in --event-time=1 --max-ahead=1m --late=drop --rate=1k/s --expect=5; do
    refused 2 dedup input --window 1k "$flag"
    says "${flag%%=*}"
  done
  refused 2 dedup input --window 1m --time-format s
  says --time-format --event-time
  refused 2 dedup input --window 1m --late mark
  says --late-output
  refused 2 dedup input --window 1m --late-output x
  says --late-output "--late mark"
  refused 2 dedup input --window 1m --late drop
  says --late --event-time
  refused 2 dedup input --arrival-time
  says --arrival-time --window
  refused 2 dedup input --window 1k --arrival-time
  says --arrival-time "window of time"
  refused 2 dedup input --window 1m --arrival-time --event-time 1
  says --arrival-time --event-time
  refused 2 dedup input --window 1m --rate 1k/s --expect 10
  says --rate --expect
  for filter in bloom none; do
    refused 2 dedup input --window 1m --arrival-time --filter "$filter"
    says "'$filter'"
  done
}

@test "values that are none are refused, with what would be right" {
  echo a >input
  for value in 0 0s 10min soon -5 1.5 "10 m" 99999999d; do refused 2 dedup input "--window=$value"; done
  refused 2 dedup input --window 1m --event-time 1 --late never
  says pass drop mark
  refused 2 dedup input --window 1m --growth fast
  says density cardinality
  refused 2 dedup input --window 1m --event-time 1 --time-format us8601
  says iso8601
  refused 2 dedup input --window 1m --rate 5
  says --rate 50k/s
  refused 2 dedup input --window 1m --max-ahead 5
  says --max-ahead
  refused 2 dedup input --csv --window 1m --event-time nosuch --stats none
  says nosuch
  for flag in --window --event-time --time-format --max-ahead --late --late-output --rate --slack \
    --npws --growth; do
    refused 2 dedup input "$flag" ""
    says "$flag" empty
  done
}

@test "--late-output is its own file" {
  at 0 a >input
  refused 2 dedup input "${by_time[@]}" --window 1m --late mark --late-output input
  says --late-output input
  refused 2 dedup input "${by_time[@]}" --window 1m --late mark --late-output x --duplicates x
  refused 2 dedup input "${by_time[@]}" --window 1m --late mark --late-output s --state s
  [ "$(wc -l <input)" -eq 1 ]
}

@test "--slack and --npws: held, or refused" {
  keys_of 20000 3000 >input
  sluice dedup "${seeded[@]}" --key 1 --window 1200 --slack 2% input >out 2>err
  [ "$(stat_of '.window.slack <= 0.02 and .window.npws <= 0.02 and .window.generations >= 50')" = true ]
  counted 1200 0
  sluice dedup "${seeded[@]}" --key 1 --window 1200 --npws 10% input >out 2>err
  [ "$(stat_of '.window.slack <= 0.1 and .window.npws <= 0.1')" = true ]
  counted 1200 0
  # 1010 keys in twenty generations of 51 would be 1020: a finer cut is taken.
  sluice dedup "${seeded[@]}" --key 1 --window 1010 --slack 5% input >out 2>err
  [ "$(stat_of '.window.slack <= 0.05')" = true ]
  counted 1010 0
  # Cohort cannot, another filter can.
  sluice dedup "${seeded[@]}" --key 1 --window 1200 --slack 0.1% input >out 2>err
  [ "$(stat_of '.window.slack <= 0.001 and .filter.name != "cohort"')" = true ]
  counted 1200 0
  refused 2 dedup input --window 1200 --slack 0.1% --filter cohort
  refused 2 dedup input --window 1200 --slack 0.01%
  says --slack
  refused 2 dedup input --window 1200 --npws 1e-9
  refused 2 dedup input --window 1200 --slack 2
  says --slack
}

@test "a snapshot carries the window: an hour later, what an hour should forget is forgotten" {
  at 0 a b c >first
  at 5 a >second
  at 3600 a d a b >third
  run_on() { sluice dedup --stats none "${by_time[@]}" --window 10m --state s "$1" | cut -d' ' -f1 | xargs; }
  [ "$(run_on first)" = "a b c" ]
  [ "$(run_on second)" = "" ]
  [ "$(run_on third)" = "a d b" ]
  at 3601 a b d >fourth
  [ "$(run_on fourth)" = "" ]
  [ "$(sluice inspect --json s | jq -r '.filter, .parameters.window' | xargs)" = "window the last 10 minutes" ]
  # By count: what was let through in all runs.
  seq 1 100 | sluice dedup --stats none --window 100 --state n >/dev/null
  [ "$(seq 51 120 | sluice dedup --stats none --window 100 --state n | wc -l)" -eq 20 ]
  [ "$(seq 1 10 | sluice dedup --stats none --window 100 --state n | wc -l)" -eq 10 ]
}

@test "in one run or in many over a state: the same output" {
  make_timed 4000 >timed
  as ms >input
  sluice dedup "${seeded[@]}" "${by_time[@]}" --window 20s input >want 2>err
  split --lines 500 input part.
  for part in part.*; do
    sluice dedup "${seeded[@]}" "${by_time[@]}" --window 20s --state s "$part" 2>err
  done >out
  cmp want out
}

@test "a state of another window is refused" {
  at 0 a >input
  sluice dedup --stats none "${by_time[@]}" --window 10m --state s input >out
  sha256sum s >before
  for other in "--window 11m" "--window 600001ms" "--window 1k" "--window hour" "--window 10m --refresh"; do
    # shellcheck disable=SC2086
    if [[ $other == "--window 1k" ]]; then
      refused 2 dedup --key 1 --state s $other input
    else
      refused 2 dedup "${by_time[@]}" --state s $other input
    fi
    says "'s'"
  done
  refused 2 dedup --key 1 --state s input
  refused 2 dedup --key 1 --window 10m --arrival-time --state s input
  says event-time
  refused 2 dedup "${by_time[@]}" --window 10m --state s --slack 2% input
  says generations
  refused 2 dedup "${by_time[@]}" --window 10m --state s --rate 5/s input
  refused 2 dedup "${by_time[@]}" --window 10m --state s --max-ahead 5m input
  refused 2 dedup "${by_time[@]}" --window 10m --state s --growth cardinality input
  sha256sum --quiet --check before
  # And one without a window for a run with one.
  sluice dedup "${quiet[@]}" --key 1 --state n input >out
  refused 2 dedup --key 1 --window 10m --arrival-time --state n input
}

@test "--stats json has a window, and only where there is one" {
  at 0 a >input
  sluice dedup --stats json input >out 2>err
  [ "$(stat_of 'has("window")')" = false ]
  sluice dedup --stats json "${by_time[@]}" --window 10m input >out 2>err
  [ "$(stat_of '.window | keys_unsorted | join(" ")')" = \
    "kind size anchor slack npws slack_lost slack_lost_low slack_lost_high slack_predicted slack_sample generations growths late disbelieved forgotten_early stash" ]
  [ "$(stat_of '.window | [.kind,.size,.anchor,.generations,.growths,.late,.disbelieved,.stash] | join(" ")')" = \
    "time 600 delivered 24 0 0 0 0" ]
  [ "$(stat_of '(.window.slack - 1 / 24 | fabs < 1e-6) and (.window.npws - 1 / 24 | fabs < 1e-6)')" = true ]
}

# burst RATE FROM TO: so many new keys per second.
burst() {
  awk -v rate="$1" -v from="$2" -v to="$3" 'BEGIN {
    for (s = from; s < to; ++s) for (i = 0; i < rate; ++i) printf "%d.%d %d\n", s, i, 1767225600 + s
  }'
}

@test "a burst makes the window grow within its error target, and it shrinks again" {
  { burst 10 0 100 && burst 2000 100 130 && burst 10 130 150; } >busy
  { cat busy && burst 10 150 400; } >input
  for by in density cardinality; do
    args=("${by_time[@]}" --window 60s --rate 10/s --fpr 1e-4 --growth "$by")
    sluice dedup --stats json --seed 1 "${args[@]}" busy >out 2>err
    [ "$(stat_of '.window.growths > 0 and .filter.predicted_fpr <= 1e-4 and .filter.target_fpr == 1e-4')" = true ]
    [ "$(stat_of '.filter.capacity >= 60000')" = true ]
    sluice dedup --stats json --seed 1 "${args[@]}" input >out 2>err
    [ "$(stat_of '.filter.capacity < 10000 and .filter.predicted_fpr <= 1e-4')" = true ]
    # Every key is new: what is missing was lost, of 65 thousand not more than the target's share.
    lost=$(($(wc -l <input) - $(wc -l <out)))
    [ "$lost" -le 20 ] || fail "$lost lost"
  done
}

@test "--rate and --expect are hints" {
  burst 1000 0 20 >input
  sluice dedup "${seeded[@]}" "${by_time[@]}" --window 1m --rate 1k/s input >out 2>err
  [ "$(stat_of '[.filter.capacity,.window.growths,.distinct]|join(" ")')" = "60979 0 20000" ]
  sluice dedup "${seeded[@]}" "${by_time[@]}" --window 1m --rate 60k/m input >out 2>err
  [ "$(stat_of .filter.capacity)" = 60979 ]
  sluice dedup "${seeded[@]}" "${by_time[@]}" --window 1m --expect 60k input >out 2>err
  [ "$(stat_of .filter.capacity)" = 60000 ]
  sluice dedup "${seeded[@]}" "${by_time[@]}" --window 1m --rate 1/s input >out 2>err
  [ "$(stat_of '.window.growths > 0 and .distinct == 20000')" = true ]
  sluice dedup "${seeded[@]}" "${by_time[@]}" --window 1m input >out 2>err
  [ "$(stat_of '.distinct == 20000')" = true ]
}

@test "a window does not grow past its plan, however long the stream" {
  seq 1 "$(count 300000 20000000)" | sluice dedup "${seeded[@]}" --fpr 1e-9 --window 10k >out 2>err
  [ "$(stat_of '[.distinct == .records, .filter.keys <= 10500, .filter.capacity == 10000, .window.growths == 0] | all')" = true ]
}

# The times of keys that a state brought are not known: nobody can say whether their repeats are past the window.
@test "what slack lost of a loaded state's keys is unknown, not 0" {
  awk 'BEGIN { for (i = 0; i < 5000; ++i) print i, 1767225600 }' >before
  awk 'BEGIN { for (i = 0; i < 3000; ++i) print i, 1767225600 + 610 }' >after
  window=(--key 1 --event-time 2 --window 10m --max-ahead 1h --seed 1 --state s)
  sluice dedup "${window[@]}" --stats json before >out 2>err
  [ "$(stat_of '.window | [.slack_lost,.slack_lost_low,.slack_lost_high] | join(" ")')" = "0 0 0" ]
  cp s copy
  sluice dedup "${window[@]}" --stats json after >out 2>err
  [ "$(stat_of '[.duplicates,.window.slack_lost,.window.slack_predicted,.window.slack_lost_low] | tojson')" = \
    "[3000,null,null,0]" ]
  [ "$(stat_of '.window.slack_lost_high | . >= 2700 and . <= 3300')" = true ]
  mv copy s
  sluice dedup "${window[@]}" --stats text after >out 2>err
  grep -q 'slack  *unknown for .*3,.* of keys from the loaded state' err
  # Keys that are new to the state are known.
  awk 'BEGIN { for (i = 0; i < 5000; ++i) print "n" i, 1767225600 + 700 }' >new
  awk 'BEGIN { for (i = 0; i < 5000; ++i) print "n" i, 1767225600 + 1310 }' >again
  sluice dedup "${window[@]}" --stats json new again >out 2>err
  [ "$(stat_of '.window | .slack_lost == .slack_lost_high and .slack_lost > 4000')" = true ]
}

# A time that a second record confirms later was not now when the records in between were judged.
@test "what slack lost is counted as of when each record came" {
  window=(--key 1 --event-time 2 --window 10m --seed 1 --stats json)
  printf '%s\n' 'a 1000' 'b 1800' 'a 1300' 'c 1900' | sluice dedup "${window[@]}" >out 2>err
  [ "$(stat_of '[.duplicates,.window.disbelieved,.window.slack_lost] | join(" ")')" = "1 1 0" ]
  # With --refresh a record out of order does not tell when a key of a loaded state came last.
  echo 'a 1100' | sluice dedup "${window[@]}" --refresh --state s >out 2>err
  printf '%s\n' 'a 1000' 'a 1650' | sluice dedup "${window[@]}" --refresh --state s >out 2>err
  [ "$(stat_of '[.duplicates,.window.slack_lost_low] | join(" ")')" = "2 0" ]
}

# Keys that come back just after the window: with the usual slack about half of these are held back.
@test "records held back past the window are counted, and a smaller slack holds back fewer" {
  awk 'BEGIN { for (i = 0; i < 20000; ++i) printf "%d %d\n", i % 2450, 1767225600 + i / 4 }' >input
  lost() {
    "$SLUICE" dedup --key 1 --event-time 2 --window 10m --seed 1 --stats json "$@" input 2>&1 >output |
      tail -n 1 | jq .window.slack_lost
  }
  # The truth: repeats come after 612.5 s, so every record that is held back is past the window.
  [ "$(lost)" -eq $((20000 - $(wc -l <output))) ]
  [ "$(wc -l <output)" -lt 15000 ]
  [ "$(lost --slack 0.1%)" -eq 0 ]
  [ "$(wc -l <output)" -eq 20000 ]
  run "$SLUICE" plan --window 10m --rate 8/s --repeat-every 610s
  [[ $status -eq 0 && $output == *'slack lost'* && $output == *'every second time'* ]]
  run "$SLUICE" plan --window 10m --repeat-every 10k
  [[ $status -eq 2 && $output == *--repeat-every*--window* ]]
}

@test "a pipe that ends within its window by arrival: old records may have been taken for duplicates" {
  log() { printf '%s\n' 'a 1' 'b 2' 'a 2000000000' 'a 2100000000'; }
  # told FLAG...: whether the run warns.
  told() {
    log | sluice dedup --stats none --key 1 "$@" >out 2>err
    grep -qF '2 records were taken for duplicates by the time of arrival' err
  }
  told --window 10m
  grep -qF -- '--event-time FIELD' err
  grep -qF -- '--arrival-time' err
  told --window 10m --invert
  run ! told --window 10m --arrival-time
  run ! told --window 10m --event-time 2
  run ! told --window 100
  # A run as long as its window.
  run ! told --window 1us
  # One that goes on from an earlier run.
  echo 'c 3' | sluice dedup --stats none --key 1 --window 10m --state s >out
  run ! told --window 10m --state s
  printf '%s\n' a b c | sluice dedup --stats none --window 10m >out 2>err
  [ ! -s err ]
  sluice dedup --stats none --window 10m --key 1 --arrival-time <(log) >out 2>err
  [ ! -s err ]
}
