#!/usr/bin/env bats
# Times as logs write them, in every record format.
load helper

minutes=(--stats none --window 10m)

# An access log that crosses New Year: the second line is a repeat, the third comes half an hour later.
access_log() {
  cat <<'END'
192.0.2.7 - ann [31/Dec/2025:23:58:10 +0100] "GET /a?b=1 HTTP/1.1" 200 512 "-" "Mozilla/5.0 (X11)"
192.0.2.7 - ann [31/Dec/2025:23:59:40 +0100] "GET /a?b=1 HTTP/1.1" 200 512 "-" "Mozilla/5.0 (X11)"
192.0.2.7 - ann [01/Jan/2026:00:30:00 +0100] "GET /a?b=1 HTTP/1.1" 200 512 "-" "Mozilla/5.0 (X11)"
192.0.2.8 - - [31/Dec/2025:23:31:00 +0000] "GET /a?b=1 HTTP/1.1" 200 512 "-" "curl/7.88.1"
192.0.2.8 - - [31/Dec/2025:18:32:00 -0500] "GET /a?b=1 HTTP/1.1" 200 512 "-" "curl/7.88.1"
END
}

@test "clf in one field or two, given or told by itself, in every format" {
  access_log >log
  for format in auto clf; do
    sluice dedup "${minutes[@]}" --strict --key 1,7 --event-time 4,5 --time-format $format log >out
    sed -n '1p;3p;4p' log | cmp - out
    sed -E 's/^(\S+) .*\[(.*)\].*/"\1","[\2]"/; 1i ip,time' log >table.csv
    sluice dedup "${minutes[@]}" --strict --csv --key ip --event-time time --time-format $format table.csv >out
    sed -n '1p;2p;4p;5p' table.csv | cmp - out
    tr -d '"' <table.csv | tr , '\t' >table.tsv
    sluice dedup "${minutes[@]}" --strict --tsv --key ip --event-time time --time-format $format table.tsv >out
    sed -n '1p;2p;4p;5p' table.tsv | cmp - out
    sed -E 's/^(\S+) .*\[(.*)\].*/{"ip":"\1","t":"\2"}/; s|/|\\/|' log >events
    sluice dedup "${minutes[@]}" --strict --json --key /ip --event-time /t --time-format $format events >out
    sed -n '1p;3p;4p' events | cmp - out
    sed -E 's/^(\S+) .*\[(.*)\].*/\1|\2/' log >piped
    sluice dedup "${minutes[@]}" --strict -d '|' --key 1 --event-time 2 --time-format $format piped >out
    sed -n '1p;3p;4p' piped | cmp - out
  done
  sluice compare --key 1,7 --window 10m --event-time 4,5 --filter exact-window --stats json log >out
  # It leaves out the time that it does not believe, as it does for numbers.
  [ "$(jq -c '.stream | [.records, .distinct, .duplicates, .unkeyed]' out)" = "[4,2,2,0]" ]
}

@test "syslog crosses New Year and goes on in a state, whatever today is" {
  cat >log <<'END'
Dec 31 23:59:50 host sshd[1]: ann failed
Jan  1 00:00:10 host sshd[1]: ann failed
Jan  1 00:20:10 host sshd[1]: ann failed
Dec 31 23:59:59 host sshd[1]: bob failed
END
  flags=(--key 6 --event-time "1,2,3" --time-format syslog)
  sluice dedup --window 10m "${flags[@]}" log >out 2>err
  grep -q "by event time 1,2,3 (in UTC)" err
  sluice dedup --stats json --window 10m "${flags[@]}" log >out 2>err
  sed -n '1p;3p;4p' log | cmp - out
  [ "$(stat_of '[.malformed,.late]|join(" ")')" = "0 0" ]
  # Two runs on one state: the second begins after the first, not today.
  sluice dedup "${minutes[@]}" "${flags[@]}" --year 2019 --state state <(sed -n 1p log) >out
  sluice dedup "${minutes[@]}" "${flags[@]}" --state state <(sed -n 2,3p log) >>out
  sed -n '1p;3p' log | cmp - out
  sluice inspect state >err
  grep -q 2020-01-01T00:00:10Z err
  # RFC 5424 among them.
  printf 'k 2025-12-31T23:59:50.5+00:00\nk 2026-01-01T00:59:59+01:00\n' >log
  sluice dedup "${minutes[@]}" --strict --key 1 --event-time 2 --time-format syslog log >out
  head -n 1 log | cmp - out
}

@test "old records with --year in a state of later ones: an interrupted run goes on in their year" {
  flags=(--key 4 --event-time "1,2,3" --time-format syslog --strict --late mark --late-output late)
  printf 'Nov 10 10:00:00 %s\n' new newer >now
  # Enough for several checkpoints.
  { seq -f 'Dec 31 10:00:00 a%g' 50000 && printf 'Nov 10 10:00:01 %s\n' c new; } >old
  sluice dedup "${minutes[@]}" "${flags[@]}" --year 2026 --state s now >/dev/null
  cp s again
  # All are years too late.
  sluice dedup "${minutes[@]}" "${flags[@]}" --year 2019 --state s old -o out
  [ ! -s out ]
  cmp late old
  # The same with a stop before the last two.
  rm late out
  { head -n 50000 old && echo wrong && tail -n 2 old; } >log
  run -1 sluice dedup "${minutes[@]}" "${flags[@]}" --checkpoint-every 1 --year 2019 --state again log -o out
  sluice inspect again | grep -q 'unfinished\|being read'
  cp old log
  sluice dedup "${minutes[@]}" "${flags[@]}" --year 2019 --state again log -o out
  [ ! -s out ]
  cmp late old
  # And when more has come to the file since.
  echo "Nov 10 10:00:02 newer" | tee -a log >>old
  sluice dedup "${minutes[@]}" "${flags[@]}" --year 2019 --state again log -o out
  [ ! -s out ]
  cmp late old
}

# Two threads, and pieces of any size: the year of a time depends on the records before it.
@test "years are the same for one thread and two, files and pipes" {
  # Six years, in steps of a month, a minute of records each. The first two of a month have different keys: one
  # record that is sent twice would not make the clock believe that a month has passed.
  TZ=UTC awk 'BEGIN { for (month = 0; month < 72; ++month) for (i = 0; i < 600; ++i)
    print strftime("%b %e %H:%M:%S", 1577880000 + month * 2629800 + int(i / 10)),
      "k" (i * i * 31 + month * 17) % 199 }' >log ||
    skip "awk has no strftime"
  flags=("${minutes[@]}" --seed 1 --key 4 --event-time "1,2,3" --time-format syslog --year 2020)
  sluice dedup "${flags[@]}" --threads 1 log >one
  sluice dedup "${flags[@]}" --threads 2 log >two
  cmp one two
  while IFS= read -r line; do echo "$line"; done <log | sluice dedup "${flags[@]}" >piped
  cmp one piped
  # Exactly: each key once a month.
  awk '!seen[$4, int((NR - 1) / 600)]++' log | cmp - one
}

@test "29 February in a year that has none is quoted and passed through" {
  printf 'Feb 28 23:59:50 k\nFeb 29 00:00:10 k\nMar  1 00:00:10 k\n' >log
  flags=(--key 4 --event-time "1,2,3" --time-format syslog)
  sluice dedup --stats json --window 2m "${flags[@]}" --year 2025 log >out 2>err
  holds out 'Feb 28 23:59:50 k\nFeb 29 00:00:10 k\n'
  [ "$(stat_of '[.malformed,.faults[0].record]|join(" ")')" = "1 2" ]
  [[ $(stat_of '.faults[0].reason') == *"29 February"*"Feb 29 00:00:10 k"* ]]
  run -1 --separate-stderr sluice dedup "${minutes[@]}" "${flags[@]}" --strict --year 2025 log
  [ "$output" = "Feb 28 23:59:50 k" ]
  says "record 2" "29 February" "give the year"
  sluice dedup --stats none --window 2m "${flags[@]}" --year 2024 log >out
  holds out 'Feb 28 23:59:50 k\nMar  1 00:00:10 k\n'
}

@test "rfc2822 and patterns" {
  printf 'k|Tue, 10 Oct 2000 13:55:36 -0700\nk|10 Oct 2000 20:56:36 GMT\nk|Tue, 10 Oct 2000 17:30:00 EST\n' >mail
  for format in auto rfc2822; do
    sluice dedup "${minutes[@]}" --strict -d '|' --key 1 --event-time 2 --time-format $format mail >out
    sed -n '1p;3p' mail | cmp - out
  done
  sluice dedup "${minutes[@]}" --strict --key 1 --event-time 2,3,4,5,6,7 <(tr '|' ' ' <mail | sed -n '1p;3p') >out
  [ "$(wc -l <out)" -eq 2 ]
  printf 'k;10.10.2000 13:55:36,123\nk;10.10.2000 13:55:36,9\nk;10.10.2000 14:55:36,9\n' >log
  sluice dedup "${minutes[@]}" --strict -d ';' --key 1 --event-time 2 \
    --time-format 'strptime:%d.%m.%Y %H:%M:%S,%f' log >out
  sed -n '1p;3p' log | cmp - out
  # Dates need a window that suits them.
  refused 2 dedup "${minutes[@]}" -d ';' --key 1 --event-time 2 --time-format 'strptime:%d.%m.%Y' \
    <(echo 'k;10.10.2000')
  says "'10.10.2000', is a date without a time of day" "give --window day"
  # What GNU date writes.
  for form in '%d/%b/%Y:%H:%M:%S %z' '%a, %d %b %Y %H:%M:%S %z' '%A %B %e %I:%M:%S %p %Y %z' '%s.%N' \
    '%j %y %T %z' '%D %T %z'; do
    pattern=${form//%N/%f}
    for zone in UTC0 CET-1 EST5; do
      echo "k;$(TZ=$zone LC_ALL=C date -d @1700000000 "+$form")"
    done >input
    sluice dedup "${minutes[@]}" --strict -d ';' --key 1 --event-time 2 --time-format "strptime:$pattern" input >out
    head -n 1 input | cmp - out
  done
}

@test "a wrong guess is refused with the flags that are right, before anything is written" {
  access_log >log
  check() {
    local advice=$1
    shift
    refused 2 dedup "${minutes[@]}" "$@" -o result
    says "record 1" "$advice"
    [ ! -e result ]
  }
  check "it looks like clf: give --time-format clf" --event-time 4,5 --time-format iso8601 log
  check "--event-time 4,5" --event-time 4 log
  check "--event-time 4,5" --event-time 4 --time-format clf log
  echo 'Oct 10 13:55:36 host k' >log
  check "it looks like syslog: give --time-format syslog" --event-time 1,2,3 log
  check "--time-format syslog and --event-time 1,2,3" --event-time 1 log
  check "--time-format syslog" --event-time 1,2,3 --time-format 'strptime:%b %d %Y %T' log
  echo '1700000000000 k' >log
  check "it looks like ms: give --time-format ms" --event-time 1 --time-format clf log
  printf 'k 2026/01/02 10:00:00\nk 2026/01/02 10:00:01\n' >log
  check "give --time-format 'strptime:%Y/%m/%d %H:%M:%S'" --event-time 2,3 log
  check "give --time-format 'strptime:%Y/%m/%d %H:%M:%S'" --event-time 2,3 --time-format 'strptime:%Y-%m-%d %T' log
  check "--event-time 2,3 and --time-format 'strptime:%Y/%m/%d %H:%M:%S'" --event-time 2 log
  [ "$(sluice dedup "${minutes[@]}" --key 1 --event-time 2,3 --time-format 'strptime:%Y/%m/%d %H:%M:%S' log | wc -l)" -eq 1 ]
  echo 'k 02/01/2026 10:00:00' >log
  check "'strptime:%d/%m/%Y %H:%M:%S' or 'strptime:%m/%d/%Y %H:%M:%S'" --event-time 2,3 log
  echo '{"t":"Tue, 10 Oct 2000 13:55:36 GMT"}' >log
  check "it looks like rfc2822" --json --event-time /t --time-format iso8601 log
  refused 2 compare --window 10m --event-time /t --json --time-format clf --filter exact log
  says "it looks like rfc2822"
  # What comes before tells nothing; once a time was read, others are malformed and passed through.
  printf 'time\n-\nOct\n' >log
  refused 2 dedup "${minutes[@]}" --event-time 1 log
  says "record 3"
  printf '2026-01-01T10:00\nOct\n' >log
  sluice dedup "${minutes[@]}" --event-time 1 log | cmp - log
}

@test "messages name the format that was expected" {
  printf '10/Oct/2000:13:55:36 +0000|k\nsoon|k\n' >log
  for form in clf 'strptime:%d/%b/%Y:%H:%M:%S %z'; do
    run -1 --separate-stderr sluice dedup "${minutes[@]}" --strict -d '|' --event-time 1 --time-format "$form" log
    says "record 2: field 1, 'soon', is not a"
    [[ $stderr == *"clf time such as 10/Oct"* || $stderr == *"strptime pattern"* ]]
  done
}

@test "patterns and flags that make no sense are refused at the start" {
  echo k >log
  refused 2 dedup "${minutes[@]}" --event-time 1 --time-format 'strptime:%Y-%m-%d %Q' log
  says "unknown conversion %Q" "there are %Y"
  refused 2 dedup "${minutes[@]}" --event-time 1 --time-format 'strptime:%H:%M:%S' log
  says "does not say the month"
  refused 2 dedup "${minutes[@]}" --event-time 1 --time-format 'strptime:%m-%d %T' log
  says "does not say the year" "or give --year"
  refused 2 dedup "${minutes[@]}" --event-time 1 --time-format clf --year 2025 log
  says "--year is for times without a year" syslog
  refused 2 dedup "${minutes[@]}" --event-time 1 --time-format ms --time-zone UTC log
  says "--time-zone"
  refused 2 dedup "${minutes[@]}" --time-zone UTC log
  says "--time-zone needs --event-time"
  refused 2 compare --year 2025 log
  says "--year needs --event-time"
  for zone in CET+ ../../etc/passwd /etc/passwd Europe Nowhere/Land +25:00; do
    refused 2 dedup "${minutes[@]}" --event-time 1 --time-zone "$zone" log
    says "--time-zone '$zone' is not UTC, an offset"
  done
  echo none >Zone
  TZDIR=$PWD refused 2 dedup "${minutes[@]}" --event-time 1 --time-zone Zone log
  says "--time-zone Zone" "not a file of the tz database"
}

@test "a zone for times that do not say theirs; what occurs twice or never is no time" {
  printf 'k 2026-07-01T12:00:00\nk 2026-07-01T10:01:00Z\n' >log
  for zone in +02:00 +0200 +02; do
    sluice dedup "${minutes[@]}" --strict --key 1 --event-time 2 --time-zone $zone log >out
    head -n 1 log | cmp - out
  done
  [ -e /usr/share/zoneinfo/Europe/Berlin ] || skip "there is no tz database"
  sluice dedup "${minutes[@]}" --strict --key 1 --event-time 2 --time-zone Europe/Berlin log >out
  head -n 1 log | cmp - out
  # 01:30Z is the second 02:30 of that night; on 29 March there is no 02:30.
  printf 'a 2026-10-25T01:59:00\na 2026-10-25T02:30:00\na 2026-03-29T02:30:00\na 2026-10-25T01:30:00Z\n' >log
  sluice dedup --stats json --window 10m --key 1 --event-time 2 --time-zone Europe/Berlin log >out 2>err
  cmp log out
  [ "$(stat_of '[.malformed,.duplicates,(.faults[].record)]|join(" ")')" = "2 0 2 3" ]
  [[ $(stat_of '.faults[0].reason') == *"occurs twice or never in its zone"* ]]
  # The first of all is no wrong guess.
  sed 1d log | sluice dedup "${minutes[@]}" --key 1 --event-time 2 --time-zone Europe/Berlin >out
  sed 1d log | cmp - out
  # The same in a syslog.
  printf 'Oct  1 12:00:00 k\nOct 25 02:30:00 k\n' >log
  sluice dedup --stats json --window 10m --key 4 --event-time "1,2,3" --time-format syslog --year 2026 \
    --time-zone Europe/Berlin --state state log >out 2>err
  [ "$(stat_of .malformed)" -eq 1 ]
  sluice inspect state | grep -q 2026-10-01T10:00:00Z
}

# Names of months are English, whatever the locale. The German one is made here, if that can be.
@test "the locale does not matter" {
  access_log >log
  if [ -e /usr/share/i18n/locales/de_DE ]; then
    localedef --quiet -i de_DE -f UTF-8 ./de_DE.UTF-8
    export LOCPATH=$PWD
    [ "$(LC_ALL=de_DE.UTF-8 date -d 2000-10-10 +%b)" = Okt ]
  fi
  LC_ALL=de_DE.UTF-8 sluice dedup "${minutes[@]}" --strict --key 1,7 --event-time 4,5 log >out
  sed -n '1p;3p;4p' log | cmp - out
  LC_ALL=de_DE.UTF-8 sluice dedup "${minutes[@]}" --strict --key 1,7 --event-time 4,5 \
    --time-format 'strptime:[%d/%b/%Y:%T %z]' log | cmp - out
}
