#!/usr/bin/env bats
# Times of events as people write them: in one field or two, without a time of day, or not at all.
load helper

minutes=(--stats none --key 1 --window 10m)

@test "a date and a time in two fields, in every format" {
  printf 'k 2026-01-01 10:00:00\nk 2026-01-01 10:05:00\nk 2026-01-01 23:00:00\n' >lines
  sluice dedup "${minutes[@]}" --event-time 2,3 lines >out
  holds out 'k 2026-01-01 10:00:00\nk 2026-01-01 23:00:00\n'
  { echo id,date,time && tr ' ' , <lines; } >table.csv
  sluice dedup --stats none --csv --key id --window 10m --event-time date,time table.csv >out
  holds out 'id,date,time\nk,2026-01-01,10:00:00\nk,2026-01-01,23:00:00\n'
  sluice dedup --stats none -d , --event-time 2,3 --window 10m <(sed 1d table.csv) >out
  holds out 'k,2026-01-01,10:00:00\nk,2026-01-01,10:05:00\nk,2026-01-01,23:00:00\n'
  sed -E 's/(.*) (.*) (.*)/{"t":"\3","d":"\2","k":"\1"}/' lines >events
  sluice dedup --stats none --json --key /k --window 10m --event-time /d,/t events >out
  holds out '{"t":"10:00:00","d":"2026-01-01","k":"k"}\n{"t":"23:00:00","d":"2026-01-01","k":"k"}\n'
}

@test "times with an offset after a blank, in one field or three" {
  # The second is five minutes after the first, the third an hour and more.
  printf 'k,2026-01-01 11:00:00 +0100\nk,2026-01-01 10:05:00 UTC\nk,2026-01-01 10:30:00 -01\n' >input
  for format in auto iso8601; do
    sluice dedup "${minutes[@]}" --strict -d , --time-format $format --event-time 2 input >out
    sed -n '1p;3p' input | cmp - out
    tr , ' ' <input | sluice dedup "${minutes[@]}" --strict --time-format $format --event-time 2,3,4 >out
    sed -n '1p;3p' input | tr , ' ' | cmp - out
  done
  # What `date` prints of itself.
  for form in '+%F %T %z' '+%F %T %:z' '+%F %T UTC' --iso-8601=seconds --rfc-3339=ns; do
    for zone in UTC0 CET-1 EST5; do
      [[ $form != *UTC* || $zone == UTC0 ]] || continue
      echo "k,$(TZ=$zone date -d @1700000000 "$form")"
    done
  done >input
  sluice dedup "${minutes[@]}" --strict -d , --event-time 2 input >out
  head -n 1 input | cmp - out
  sluice dedup --stats json --key 1 --window 10m -d , --event-time 2 \
    <(printf 'k,2026-01-01 11:00:00 CET\nk,2026-01-01 11:00:00 \n') >out 2>err
  [ "$(stat_of .malformed)" -eq 2 ]
}

@test "a stream of dates is refused in a window shorter than a day, before anything is written" {
  printf 'k 2026-01-01 10:00:00\nk 2026-01-01 23:00:00\n' >input
  for window in 10m hour 23h; do
    refused 2 dedup --stats none --key 1 --window "$window" --event-time 2 input -o result
    says "input: record 1: field 2, '2026-01-01', is a date" --window "--event-time 2,3" "give --window day"
    [ ! -e result ]
  done
  for window in 25h 145h day; do
    sluice dedup --stats none --key 1 --window "$window" --event-time 2 input >out
    holds out 'k 2026-01-01 10:00:00\n'
  done
  printf '{"k":1,"t":"2026-01-01"}\n' >events
  refused 2 dedup --stats none --json --key /k --window 1m --event-time /t events
  says "/t, '2026-01-01', is a date" "name both, as in --event-time /t,/time;"
  refused 2 dedup --stats none --json --key /k --window 24h --event-time /t events
  says "name both, as in --event-time /t,/time;"
  printf 'k,t\n1,2026-01-01\n' >events.csv
  refused 2 dedup --stats none --csv --key k --window 1m --event-time t events.csv
  says "name both, as in --event-time t,time;"
  refused 2 dedup --stats none --csv --key k --window 1m --event-time 2 events.csv
  says "name both, as in --event-time 2,3;"
  refused 2 dedup --stats none --window 1m --key-regex '^(k) (?P<time>\S+)' input
  says "let the group 'time' match both"
  refused 2 dedup --stats none --window 1m --key 1 --time-bytes 3-12 input
  says "name both, as in --time-bytes 1-19"
  refused 2 compare --key 1 --window 10m --event-time 2 --filter exact input
  says "'2026-01-01', is a date"
}

# What each window would remember of dates, exactly: a record is held back if its key was let through less
# than DAYS days before.
exactly() {
  awk -v days="$1" '{ day = substr($2, 9) + (substr($2, 6, 2) == "02" ? 31 : 0) }
    !($1 in last) || day - last[$1] >= days { last[$1] = day; print }' dates
}

# Repeats that are exactly as old as the window are in its slack: all of them would be lost.
@test "a stream of dates is refused where slack would lose it, and the window that is named loses nothing" {
  # 3,000 keys per day, too many for a short list; each comes on every day, twice.
  awk 'BEGIN { for (day = 1; day <= 50; ++day) for (i = 0; i < 6000; ++i)
    printf "%d 2026-%02d-%02d\n", i % 3000, 1 + (day > 31), day - 31 * (day > 31) }' >dates
  while read -r days window advice; do
    refused 2 dedup --stats none --key 1 --window "$window" --event-time 2 dates -o result
    says "dates: record 1: field 2, '2026-01-01', is a date" "after exactly $days day" "slack" "--window $advice"
    [ ! -e result ]
    advised=$(grep -oE -- '--window [0-9]+h|--window day|--slack [0-9.]+%' <<<"$stderr" | tr '\n' ' ')
    echo "$window: $advised"
    # shellcheck disable=SC2086  # flags and their values
    sluice dedup --stats none --seed 1 --key 1 $advised --event-time 2 dates >out
    exactly "$days" >expected
    cmp out expected
  done <<'END'
1 24h day
2 47h 25h
2 48h 25h
7 7d 145h
30 30d 697h
END
  # The finest cut has slack, too.
  refused 2 dedup --stats none --key 1 --window 24h --filter exact-window --event-time 2 dates
  # A date among times is midnight.
  printf 'k 2026-01-01T10:00\nk 2026-01-02\nk 2026-01-02T11:00\n' >mixed
  sluice dedup --stats none --key 1 --window 24h --event-time 2 mixed >out
  holds out 'k 2026-01-01T10:00\nk 2026-01-02T11:00\n'
}

@test "among times a date is malformed: passed through, counted and quoted; --strict stops" {
  printf 'k 2026-01-01T10:00\nk 2026-01-01\nk 2026-01-01T10:01\n' >input
  sluice dedup --stats json --key 1 --window 10m --event-time 2 input >out 2>err
  holds out 'k 2026-01-01T10:00\nk 2026-01-01\n'
  [ "$(stat_of '[.duplicates,.malformed,.faults[0].record]|join(" ")')" = "1 1 2" ]
  run -1 --separate-stderr sluice dedup "${minutes[@]}" --strict --event-time 2 input
  [ "$output" = "k 2026-01-01T10:00" ]
  says "record 2: field 2, '2026-01-01', is a date"
}

@test "a time window by arrival over a file is refused unless it is meant" {
  printf 'a\nb\na\n' >input
  for window in 10m 7d hour day; do
    refused 2 dedup --window "$window" input
    says "'input' is a file" --event-time --arrival-time
    refused 2 dedup --window "$window" <input
    says "'standard input' is a file"
    sluice dedup --stats none --window "$window" --arrival-time input >out
    holds out 'a\nb\n'
    # On a pipe it is stated.
    sluice dedup --window "$window" <(cat input) >out 2>err
    holds out 'a\nb\n'
    grep -q "window: the .* by arrival" err
  done
  # One file among pipes is enough.
  refused 2 dedup --window 10m <(cat input) input
  sluice dedup --stats none --window 100 input >out
  holds out 'a\nb\n'
}

@test "an unreadable time is quoted, safely for a terminal, and bounded" {
  { printf 'k 10/Oct/2000_13:55:36\nk \033[31mred\nk ' && head -c 500 /dev/zero | tr '\0' x && echo; } >input
  sluice dedup --key 1 --window 10m --event-time 2 input >out 2>err
  cmp input out
  grep -q "input: record 1: field 2, '10/Oct/2000_13:55:36', is not a time" err
  grep -qF "record 2: field 2, '\\x1b[31mred', is not a time" err
  grep -qE "record 3: field 2, 'x{60}…', is not a time" err
  run ! grep -q $'\033' err
  sluice dedup --stats json --key 1 --window 10m --event-time 2 input >out 2>err
  [ "$(stat_of '.faults | map(.input + " " + (.record | tostring)) | join(" ")')" = "input 1 input 2 input 3" ]
  [ "$(stat_of '.faults[1].reason')" = $'field 2, \'\033[31mred\', is not a time' ]
  printf 'k a\177b\302\205c\342\200\256d\n' >input
  sluice dedup --stats json --key 1 --window 10m --event-time 2 input >out 2>err
  grep -qF "field 2, 'a\u007fb\u0085c\u202ed', is not a time" err
  [ "$(stat_of '.faults[0].reason')" = $'field 2, \'a\177b\u0085c\u202ed\', is not a time' ]
}

@test "an unreadable time ends a strict run" {
  echo 'k 10/Oct/2000_13:55:36' >input
  run -1 --separate-stderr sluice dedup "${minutes[@]}" --strict --event-time 2 input
  says "input: record 1: field 2, '10/Oct/2000_13:55:36', is not a time"
}

@test "no faults, an empty list; and one record is one record" {
  echo a | sluice dedup --stats json >out 2>err
  [ "$(stat_of .faults)" = "[]" ]
  echo a | sluice dedup >out 2>err
  grep -q '^sluice dedup: 1 record, ' err
}

@test "a number that may be a date is refused until its format is given" {
  printf 'a 20260101\na 20260102\na 20260301\n' >days
  run -2 --separate-stderr sluice dedup --stats none --key 1 --event-time 2 --window day days
  says "record 1: field 2, '20260101', may be a date" "--time-format iso8601"
  sluice dedup --stats none --key 1 --event-time 2 --window day --time-format iso8601 days | cmp - days
  sluice dedup --stats none --key 1 --event-time 2 --window day --time-format s days >out
  holds out 'a 20260101\n'
  printf '{"k":1,"t":202601011000}\n' >events
  run -2 --separate-stderr sluice dedup --stats none --json --key /k --event-time /t --window 10m events
  says "may be a date with a time of day" "--time-format ms"
  # Only the first time tells how a stream is: a counter of seconds may pass through any number.
  printf 'a 17000000\na 20260101\n' >counter
  sluice dedup --stats none --key 1 --event-time 2 --window 10m counter | cmp - counter
}
