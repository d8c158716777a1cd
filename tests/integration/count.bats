#!/usr/bin/env bats
# sluice count: distinct keys and duplicates, before any are removed.
load helper

# ask EXPRESSION: of the object in ./out, by jq; it must be true.
ask() {
  jq --exit-status "$1" out >/dev/null || {
    echo "not true: $1"
    cat out
    return 1
  }
}

# times N STEP: lines "key time", one every STEP seconds, the keys of which repeat after 1 to 30 lines.
times() {
  awk -v n="$1" -v step="$2" 'BEGIN {
    srand(5)
    for (i = 0; i < n; ++i) {
      key = rand() < 0.5 ? "new" i : "old" int(i / 30) "-" int(30 * rand() * rand())
      printf "%s %d\n", key, 1700000000 + i * step
    }
  }'
}

@test "the numbers are those of sort and uniq, in every format" {
  seq 1 2000 | awk '{ print $1 % 700, $1 % 11 }' >lines
  distinct=$(sort -u lines | wc -l)
  awk 'BEGIN { print "a,b" } { print $1 "," $2 }' lines >csv
  tr ',' '\t' <csv >tsv
  awk '{ printf "{\"b\":%d,\"a\":%d}\n", $2, $1 }' lines >json
  tr '\n' '\0' <lines >nul
  for how in 'lines' 'lines --key 1,2' 'nul --null' 'csv --csv --key b,a' 'tsv --tsv --key a --key b' \
    'json --json' 'json --json --key /a,/b'; do
    # shellcheck disable=SC2086  # a file and its flags
    sluice count $how --stats json >out
    ask ".exact and .records == 2000 and .unkeyed == 0 and .distinct.value == $distinct
      and .duplicates.value == 2000 - $distinct and .duplicates.standard_error == 0"
  done
  sluice count lines --key 2 --stats json --top 3 >out
  ask '[.top[] | {key, least, most}] == [{key: "1", least: 182, most: 182},
    {key: "2", least: 182, most: 182}, {key: "3", least: 182, most: 182}]'
  sluice count --csv --key b,a csv --top 1 | grep -qxE ' +1 times +[0-9]+,[0-9]+' && false
  sluice count <lines --key 1 --stats json >out
  ask '.source == "standard input" and .distinct.value == 700'
}

@test "a key is shown as it was written, made safe" {
  printf '%s\n' '{"a":"x\u001b[1m","b":120}' '{"b":1.2e2,"a":"x\u001b[1m"}' >in
  sluice count --json --key /a,/b in >out
  grep -qxF '  2 times  "x\x1b[1m",120' out
  printf 'a\tb\x01c\na\tb\x01c\n' | sluice count --key 2,1 | grep -qxF '  2 times  b\x01c,a'
  printf '%0500d\n' 1 1 | sluice count | grep -qxE '  2 times  0{240}\.\.\.'
  # Also what changes the direction of the text after it, and a name in the command.
  printf 'a\u202eb\u2066c\u061cd\n%.0s' 1 2 >$'in\e[1m'
  LC_ALL=C.UTF-8 sluice count $'in\e[1m' >out
  grep -qxF '  2 times  a\xe2\x80\xaeb\xe2\x81\xa6c\xd8\x9cd' out
  [ "$(eval "$(tail -n 1 out | sed 's/^ *sluice/sluice/')" 2>/dev/null | wc -l)" -eq 1 ]
}

@test "windows of time hold back what dedup holds back" {
  times 20000 7 >in
  sluice count --key 1 --event-time 2 in --stats json >out
  ask '.exact and .windows_one_in == 1 and ([.windows[].window] ==
    ["1s", "10s", "1m", "10m", "1h", "6h", "1d", "7d", null])'
  all=$(jq .duplicates.value out)
  for window in 10s 1m 10m 1h; do
    # The exact filter has a slack of 0.1 %: no repeat comes after exactly a window.
    held=$(sluice dedup --key 1 --event-time 2 --window $window --filter exact in --stats json \
      2>&1 >/dev/null | tail -n 1 | jq .duplicates)
    ask "(.windows[] | select(.window == \"$window\").share * $all - $held | fabs) < 0.001 * $all"
  done
}

@test "windows of records hold back no more than dedup does" {
  sluice generate lines --records 60k --output in 2>/dev/null
  sluice count in --stats json >out
  all=$(jq .duplicates.value out)
  for window in 1k 10k; do
    held=$(sluice dedup --window $window --filter exact in --stats json 2>&1 >/dev/null |
      jq .duplicates)
    # An estimate: within four standard errors.
    ask ".windows[] | select(.window == \"$window\") | (.share - 4 * .standard_error) * $all <= $held"
    ask ".windows[] | select(.window == \"$window\").share * $all >= 0.5 * $held"
  done
}

@test "a window of n records holds back what dedup with the same window holds back" {
  # The second comes 1000 records after the first, another 2000 after.
  { echo a && seq 999 && echo a && echo b && seq 1001 2999 && echo b; } >in
  sluice count in --stats json >out
  ask '.duplicates.value == 2'
  for window in 1k 10k; do
    held=$(sluice dedup --window $window --filter exact in --stats json 2>&1 >/dev/null | jq .duplicates)
    ask ".windows[] | select(.window == \"$window\").share * 2 == $held"
  done
}

@test "shares over the stream have intervals when they are estimates" {
  sluice generate lines --records 300k --output in 2>log
  sluice count in --stats json >out
  ask '.exact and all(.over_time.points[]; .standard_error == 0)'
  LC_ALL=C sluice count in >out
  grep -qE '^ +[0-9,]+ +[0-9.]+ %  #+$' out
  # All keys were counted at first.
  sluice count in --memory 21MiB --stats json >out
  ask '(.exact | not) and .over_time.points[0].standard_error == 0
    and all(.over_time.points[20:][]; .standard_error > 0 and .standard_error < 0.2)'
  LC_ALL=C sluice count in --memory 21MiB >out
  grep -qE '^ +[0-9,]+ +[0-9.]+ %  [0-9.]+ % to [0-9.]+ % +#+$' out
}

@test "the suggested command does what is said of it" {
  times 20000 1 >'in put'
  sluice count --key 1 --event-time 2 'in put' >out
  command=$(tail -n 1 out)
  [ "$command" = "  sluice dedup --key 1 --window 1m --event-time 2 'in put'" ]
  export -f sluice
  export limit_s
  bash -c "$command" >once 2>/dev/null
  all=$(awk '$1 == "duplicates" && NF == 4 { print $2 }' out | tr -d ,)
  held=$((20000 - $(wc -l <once)))
  ((held * 100 >= all * 99 && held <= all))
  # Nothing to remove, nothing to suggest.
  seq 5 | sluice count | tail -n 1 | grep -qx 'no duplicates: there is nothing to remove'
  sluice count </dev/null >out
  [ "$(cat out)" = "standard input: 0 records
  distinct                   0    0.0 %
  duplicates                 0    0.0 %
  exact: every key was counted" ]
}

@test "in little memory: within it, and within the error that is said" {
  grep -qE "__[at]san_init" "$SLUICE" && skip "the sanitizer takes memory of its own"
  records=$(count 400000 4000000)
  sluice generate lines --records "$records" --output in 2>log
  distinct=$(awk '{ gsub(",", ""); print $6 }' log)
  /usr/bin/time --format '%M' --output peak "$SLUICE" count in --memory 24MiB --stats json >out
  (($(cat peak) <= 24 * 1024))
  # Five standard errors: the secret is another in each run.
  ask ".exact == false and .one_in > 1 and .distinct.standard_error > 0
    and ((.distinct.value - $distinct) | fabs) < 5 * .distinct.standard_error
    and (.distinct.value + .duplicates.value - .records | fabs) < 1"
  sluice count in --memory 24MiB >out
  grep -qE '^  distinct +[0-9,]+ +[0-9.]+ %  [0-9,]+ to [0-9,]+$' out
  grep -qE '^  estimated from one key in [0-9]+: more --memory' out
  # A key that comes often is found although it is in no sample, most likely.
  { cat in; yes often | head -n 5000; } >longer
  sluice count longer --memory 24MiB --stats json >out
  # With 1024 counters, what is counted before it in its counter is at most a 1024th of the records.
  ask '.records as $n | .top[0] | .key == "often" and .least <= 5000 and .most >= 5000
    and .most <= 5000 + $n / 1024'
  run -2 --separate-stderr sluice count in --memory 20MiB
  [[ $stderr == *'--memory 20MiB is too small: give 21MiB or more'* ]]
}

@test "bars: blocks in UTF-8, otherwise ASCII; wild times are left out" {
  times 1000 60 >in
  { cat in; echo 'far 1'; } >wild
  LC_ALL=C.UTF-8 sluice count --key 1 --event-time 2 wild >blocks
  LC_ALL=C sluice count --key 1 --event-time 2 wild >ascii
  grep -q '█' blocks
  LC_ALL=C run ! grep -q '[^ -~]' ascii
  grep -qE '^  2023-11-15T0[0-9]:00:00Z +[0-9.]+ %  #+$' ascii
  grep -qx '  1 record far from these times left out' ascii
  grep -qx 'duplicates over the stream, per 1h' ascii
}

@test "a plot as SVG or PNG; anything else is refused before the input is read" {
  seq 100 >in
  sluice count in --plot p.svg >/dev/null
  grep -q '<svg' p.svg
  sluice count in --plot p.png >/dev/null
  [ "$(head -c 4 p.png | tail -c 3)" = PNG ]
  run -2 --separate-stderr sluice count in --plot p.jpg
  [[ $stderr == *"--plot 'p.jpg' names no kind of picture: end it with .svg or .png"* ]]
  ln in in.svg
  run -2 --separate-stderr sluice count in --plot in.svg
  [[ $stderr == *"--plot 'in.svg' is also the input"* ]]
  [ "$(wc -l <in)" -eq 100 ]
}

@test "bad usage and bad records are told" {
  echo '{"a":1}' >in
  run -2 --separate-stderr sluice count in --time-format s
  [[ $stderr == *'--time-format needs --event-time'* ]]
  run -2 --separate-stderr sluice count in --top 2k
  [[ $stderr == *'--top 2k is too many: give at most 1024'* ]]
  run -2 --separate-stderr sluice count in --stats none
  [[ $stderr == *"--stats 'none' is not text or json"* ]]
  run -1 --separate-stderr sluice count --json --key /b in --strict
  [[ $stderr == *'in: record 1: there is no /b'* ]]
  run -0 --separate-stderr sluice count --json --key /b in
  [[ $stderr == *'no record had the key: check --key and the record format'* ]]
  [[ $output == 'in: 1 record; 1 without a key left out'* ]]
}

@test "an interrupt: the numbers so far" {
  mkfifo pipe
  start count pipe --stats json
  exec {feed}>pipe
  seq 1000 >&"$feed"
  until grep -q '^SigCgt:.*[4-7c-f]...$' "/proc/$pid/status"; do :; done
  kill -TERM "$pid"
  ends_with 143
  exec {feed}>&-
  ask '.interrupted'
  grep -q 'warning: interrupted: these are the numbers of the first' err
}

@test "common logs by one word: by their time, in the order of their first times; or by number" {
  line='%s - - [14/Nov/2026:10:%02d:01 +0000] "GET /%s HTTP/1.1" 200 5 "-" "x"\n'
  # shellcheck disable=SC2059  # a format for several lines
  printf "$line" 1.1.1.1 20 a 1.1.1.1 21 a >access.log
  # shellcheck disable=SC2059
  printf "$line" 1.1.1.1 1 a 2.2.2.2 1 a | gzip >access.log.1.gz
  sluice count --log nginx access.log access.log.1.gz --stats json >out 2>err
  grep -q 'in the order of their first times: access.log.1.gz, access.log' err
  ask '.distinct.value == 2 and .duplicates.value == 2 and .over_time.axis == "seconds"'
  printf '{"id":%s,"ts":"2026-01-01T00:00:00Z"}\n' 1 2 1 >log.json
  sluice count --log json log.json --stats json >out 2>err
  ask '.duplicates.value == 1 and .over_time.axis == "seconds"'
  printf '{"id":%s}\n' 1 2 1 >log.json
  sluice count --log json log.json --stats json >out 2>err
  ask '.duplicates.value == 1 and .over_time.axis == "records"'
}
