#!/usr/bin/env bats
# --log: common logs by one word. An exact reference in Python checks every verdict.
load helper

reference=$BATS_TEST_DIRNAME/log_reference.py

@test "nginx: rotated files in any order, within ten minutes of event time, equal an exact reference" {
  python3 "$reference" write 1 "$(count 4000 60000)"
  # As a shell lists them: the newest first.
  sluice dedup --log nginx --window 10m --seed 1 access.log access.log.? >out 2>err
  grep -qF "sluice dedup: --log nginx means --key-regex '^(\\S+) - [^\\[]*\\[(?P<time>[^\\]]*)\\] \"" err
  grep -qF -- "' --time-format clf" err
  grep -qF 'the files are read in the order of their first times: access.log.4, access.log.3, access.log.2, access.log.1, access.log' err
  run python3 "$reference" check 600 0.0417 ip,url out access.log.4 access.log.3 access.log.2 access.log.1 access.log
  [[ $status -eq 0 ]] || fail "$output"
  [[ $output != *held=0* && $output != *without=0* ]] || fail "$output"
  [[ $output == *late=0* ]] || fail "$output"
  # The same by what it said that it means, with the files in order.
  local means
  means=$(sed -n 's/^sluice dedup: --log nginx means //p' err)
  eval "sluice dedup $means --window 10m --seed 1 --stats none access.log.4 access.log.3 access.log.2 access.log.1 access.log" >typed
  cmp out typed
}

@test "nginx: other keys by the names of the fields" {
  python3 "$reference" write 2 "$(count 1000 20000)"
  local keys
  for keys in ip ip,user status,url method,url,ip request,ip; do
    sluice dedup --log nginx --key "$keys" --window 10m --seed 1 --stats none access.log.4 access.log.3 access.log.2 access.log.1 access.log >out
    run python3 "$reference" check 600 0.0417 "$keys" out access.log.4 access.log.3 access.log.2 access.log.1 access.log
    [[ $status -eq 0 ]] || fail "$keys: $output"
  done
}

@test "nginx: without a window the key alone counts, and no time is read" {
  printf '%s\n' '::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 1 "-" "-"' \
    '::1 - - [10/Oct/2031:13:55:36 -0700] "POST /a HTTP/2.0" 404 1 "-" "x"' \
    '::2 - - [no time] "GET /a HTTP/1.1" 200 1 "-" "-"' >log
  sluice dedup --log nginx log >out 2>err
  sed -n '1p;3p' log | cmp - out
  run -1 grep -F 'time-format' err
}

@test "nginx: requests that are none pass, counted and quoted" {
  printf '%s\n' '1.1.1.1 - - [10/Oct/2000:13:55:36 -0700] "-" 400 0 "-" "-"' \
    '1.1.1.1 - - [10/Oct/2000:13:55:36 -0700] "" 400 0 "-" "-"' \
    '1.1.1.1 - - [10/Oct/2000:13:55:37 -0700] "GET /a b HTTP/1.1" 400 0 "-" "-"' \
    '1.1.1.1 - - [10/Oct/2000:13:55:38 -0700] "GET /a HTTP/1.1" 200 0' \
    'not a line of a log' \
    '1.1.1.1 - - [10/Oct/2000:13:55:38 -0700] "GET /a HTTP/1.1" 200 0 "-" "\x22' >log
  sluice dedup --log nginx --window 10m --stats json log >out 2>err
  head -n 5 log | cmp - out
  [[ $(stat_of '[.records, .distinct, .duplicates, .unkeyed] | @csv') == 6,1,1,4 ]]
  run -1 --separate-stderr sluice dedup --log nginx --window 10m --strict log
  says 'record 1' 'the expression does not match'
  # By the whole request each of them has a key.
  gives "$(sed 5d log | head -n 4)\n" --log nginx --key ip,request <(sed 5d log)
}

@test "apache: common, combined, with a virtual host, and escaped quotes" {
  printf '%s\n' \
    '2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 1' \
    'www.example.com:443 2001:db8::1 - ann [10/Oct/2000:13:55:37 -0700] "GET /a HTTP/1.1" 200 1 "-" "x"' \
    '2001:db8::1 - - [10/Oct/2000:13:55:38 -0700] "GET /b HTTP/1.1" 200 1' \
    '2001:db8::2 - - [10/Oct/2000:13:55:39 -0700] "GET /\"a HTTP/1.1" 200 1 "\"r\"" "a \\"' \
    '2001:db8::2 - - [10/Oct/2000:13:55:40 -0700] "GET /\"a HTTP/1.1" 200 1 "\"q\"" "b"' \
    'localhost - frank [10/Oct/2000:13:55:41 -0700] "GET /b HTTP/1.0" 200 -' \
    '2001:db8::8 - john doe [10/Oct/2000:13:55:42 -0700] "GET /c HTTP/1.0" 200 -' \
    '2001:db8::9 - john doe [10/Oct/2000:13:55:43 -0700] "GET /c HTTP/1.0" 200 -' >log
  # A name with a blank makes one field more, which is not taken for a virtual host before an address.
  sluice dedup --log apache --window 1h log >out 2>err
  sed -n '1p;3p;4p;6,8p' log | cmp - out
  sluice dedup --log apache --key user,referer --stats none log | cmp - log
  sluice dedup --log apache --key vhost,ip --stats none log >out
  cmp log out
}

@test "--log: what cannot be" {
  : >log
  refused 2 dedup --log nginx --key ip,uri log
  says "'uri'" 'ip, user, time, request, method, url' "did you mean 'url'"
  refused 2 dedup --log iis log
  says 'nginx, apache or json'
  refused 2 dedup --log nginx --json log
  refused 2 dedup --log nginx --key-regex x log
  refused 2 dedup --log nginx --event-time 4 --window 10m log
  says 'in brackets'
}

@test "json: the id and the time of the first record" {
  printf '%s\n' '{"@timestamp":"2026-01-01T10:00:00Z","id":"a","n":1}' \
    '{"@timestamp":"2026-01-01T10:01:00Z","id":"a","n":2}' \
    '{"@timestamp":"2026-01-01T11:00:00Z","id":"a","n":3}' >log
  sluice dedup --log json --window 10m log >out 2>err
  sed -n '1p;3p' log | cmp - out
  grep -qF "sluice dedup: --log json means --json --key '/id' --event-time '/@timestamp'" err
  sluice dedup --log json log 2>err >out
  head -n 1 log | cmp - out
  sluice dedup --log json --key /n --window 10m --stats none log | cmp - log
}

@test "json: unclear ids and times are named" {
  echo '{"ts":1767261600,"time":"2026-01-01T10:00:00Z","id":1,"uuid":"x"}' >log
  refused 2 dedup --log json log
  says '/id or /uuid' 'give --key'
  refused 2 dedup --log json --key /id --window 10m log
  says '/ts or /time' 'give --event-time'
  sluice dedup --log json --key /id --event-time /ts --window 10m --stats none log | cmp - log
  echo '{"ts":"soon","request_id":1}' >log
  refused 2 dedup --log json log
  says '/ts and /request_id' 'give --key'
  refused 2 dedup --log json --key /request_id --window 10m log
  says '/ts and /request_id' 'give --event-time'
  echo '[1]' >log
  refused 2 dedup --log json log
  says 'not a JSON object'
  refused 2 dedup --log json - <log
  says 'needs a FILE'
}

@test "rotated files without --log: late records pass, and the warning names the remedy" {
  python3 "$reference" write 3 "$(count 1000 20000)"
  sluice dedup --key 1,7 --event-time 4,5 --window 10m access.log access.log.? >out 2>err || true
  grep -qF 'give rotated files oldest first' err
}

@test "compare reads logs too" {
  python3 "$reference" write 4 500
  sluice compare --log nginx --window 10m --filter cohort --stats json access.log access.log.? >out 2>err
  grep -qF 'sluice compare: --log nginx means --key-regex' err
  grep -qF 'the files are read in the order' err
}

@test "--log json: an empty first file tells nothing, so the next one does" {
  : >empty.json
  printf '{"id":1}\n{"id":1}\n' >log.json
  [ "$(sluice dedup --stats none --log json empty.json log.json | wc -l)" -eq 1 ]
  refused 2 dedup --log json empty.json
  says "'empty.json' has no record"
  run ! grep -q 'not a JSON object' <<<"$stderr"
}
