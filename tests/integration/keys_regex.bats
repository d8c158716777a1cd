#!/usr/bin/env bats
# Keys by expressions and byte ranges, --delimiter with --csv, --ignore-case and --trim.
load helper

@test "--key-regex: groups, the whole match, and records that do not match" {
  printf '1 user=ann at path=/a x\n2 user=ann by path=/a y\n3 user=bob at path=/a\n4 nobody\n5 nobody\n' >log
  gives '1 user=ann at path=/a x\n3 user=bob at path=/a\n4 nobody\n5 nobody\n' \
    --key-regex 'user=(\w+) .* path=(\S+)' log
  gives '1 user=ann at path=/a x\n3 user=bob at path=/a\n4 nobody\n5 nobody\n' --key-regex 'user=\w+' log
  sluice dedup --stats json --key-regex 'user=(\w+)' log >out 2>err
  [[ $(stat_of '[.records, .distinct, .duplicates, .unkeyed] | @csv') == 5,2,1,2 ]]
  sluice dedup --key-regex 'user=(\w+)' log >out 2>err
  grep -qF "the expression does not match '4 nobody'" err
  run -1 --separate-stderr sluice dedup --strict --stats none --key-regex 'user=(\w+)' log
  says 'record 4' "the expression does not match '4 nobody'"
  [[ $output == "$(sed -n '1p;3p' log)" ]]
}

@test "--key-regex: bytes, NULs and NUL records" {
  printf 'k=\0\xff x\nk=\0\xfe x\nk=\0\xff y\n' | gives 'k=\0\xff x\nk=\0\xfe x\n' --key-regex 'k=([^ ]+)'
  printf 'a\nid=1\0b\nid=1\0c id=2\0' | gives 'a\nid=1\0c id=2\0' -0 --key-regex 'id=(\d+)'
  printf '\xef\xbb\xbfid=1\nid=1\n' | gives 'id=1\n' --key-regex '^id=(\d+)'
}

@test "--key-regex: a group 'time' is the event time" {
  printf '%s\n' '2026-01-01T10:00:00Z ann' '2026-01-01T10:05:00Z ann' '2026-01-01T10:20:00Z ann' 'soon ann' >log
  gives "$(sed -n '1p;3p;4p' log)\n" --window 10m --key-regex '^(?P<time>\S+) (\w+)' log
  sluice dedup --window 10m --key-regex '^(?P<time>\S+) (\w+)' log 2>err >out
  grep -qF "group 'time'" err
  grep -qF "group 'time', 'soon', is not" err
  # The same with a field.
  gives "$(sed -n '1p;3p;4p' log)\n" --window 10m --key-regex ' (\w+)' --event-time 1 log
  gives "$(sed -n '1p;3p;4p' log)\n" --window 10m --key-regex ' (\w+)' --time-bytes 1-20 log
  refused 2 dedup --key-regex '(?P<time>\S+) (\w+)' log
  says "group 'time' needs --window"
  refused 2 dedup --window 1k --key-regex '(?P<time>\S+) (\w+)' log
  refused 2 dedup --window 10m --event-time 1 --key-regex '(?P<time>\S+) (\w+)' log
  says 'one time too many'
  refused 2 dedup --window 10m --arrival-time --key-regex '(?P<time>\S+) (\w+)' log
  refused 2 dedup --window 10m --key-regex '(?P<time>\S+)' log
  says 'there is no other group'
}

@test "--key-regex: expressions that are refused, in one sentence" {
  : >log
  refused 2 dedup --key-regex 'a(b' log
  says "--key-regex 'a(b': missing"
  refused 2 dedup --key-regex '(' log
  [[ $stderr == *"--key-regex '(': missing ) after a group"*'write \( for the character (' ]] || fail "$stderr"
  refused 2 dedup --key-regex '(\w)\1' log
  says 'backreferences are not supported'
  refused 2 dedup --key-regex 'a(?!b)' log
  says 'lookahead is not supported'
  refused 2 dedup --key-regex "$(printf '\\w{1000}%.0s' {1..20})" log
  says 'too large'
  refused 2 dedup --key-regex '(a{99}){99}' log
  says 'repetitions multiply to at most 1000'
  refused 2 dedup --key-regex '\d*' log
  says 'same empty key'
  refused 2 dedup --csv --key-regex a log
  says 'for lines and --null records'
  refused 2 dedup --key 1 --key-regex a log
  says 'exclude each other'
  refused 2 compare --key-regex 'a(b' log
  says '--key-regex'
}

@test "--key-regex: a long record is read in bounded time, whatever the expression" {
  # Exponential for an engine that backtracks.
  { printf 'a%.0s' {1..5000}; echo; } >log
  sluice dedup "${quiet[@]}" --key-regex '^(?:(a+)+)+b' log | cmp - log
  head -c 50000000 /dev/zero | tr '\0' a >long
  { echo ' id=1'; echo 'x id=1'; } >>long
  sluice dedup "${quiet[@]}" --key-regex 'id=(\d)' long | cmp - <(head -n 1 long)
}

@test "--key-bytes: ranges, and records that are too short" {
  printf '20260101ann  x\n20260102ann  x\n20260103bob  x\n2026\n2026\n' >fixed
  gives '20260101ann  x\n20260103bob  x\n2026\n2026\n' --key-bytes 9-13 fixed
  gives '20260101ann  x\n20260103bob  x\n2026\n2026\n' --key-bytes 9-11,14- fixed
  sluice dedup --key-bytes 9-13 fixed >out 2>err
  grep -qF "there are only 4 bytes, and 13 are needed, in '2026'" err
  refused 2 dedup --key-bytes 3-1 fixed
  says "--key-bytes '3-1'" 'counted from 1'
  refused 2 dedup --json --key-bytes 1-2 fixed
}

@test "--time-bytes: the time of a record of fixed width" {
  printf '20260101T100000Zann\n20260101T100500Zann\n20260101T102000Zann\n' >fixed
  gives '20260101T100000Zann\n20260101T102000Zann\n' --key-bytes 17-19 --time-bytes 1-16 --window 10m fixed
  refused 2 dedup --key-bytes 17-19 --time-bytes 1-16 fixed
  says '--time-bytes needs --window'
  refused 2 dedup --key 1 --time-bytes 1-16 --event-time 1 --window 10m fixed
}

@test "--csv --delimiter: quotes, newlines, headers, marks and posteriors" {
  printf '\xef\xbb\xbf"id";text\n1;"a;\nb"\n2;"a;\nb"\n3;a,b\n4;a,b\n' >table
  gives '\xef\xbb\xbf"id";text\n1;"a;\nb"\n3;a,b\n' --csv --delimiter ';' --key text table
  gives '\xef\xbb\xbf"id";text\n1;"a;\nb"\n2;"a;\nb"\n3;a,b\n4;a,b\n' --csv -d ';' --key id table
  printf 'a;b\n1;2\n"1";2\n' | gives 'a;b\n1;2\n' --csv -d ';'
  printf '1|x\n2|x\n' | gives '1|x\n' --csv -d '|' --no-header --key 2
  printf 'a\tb\n1\tx\n2\tx\n' | gives 'a\tb\n1\tx\n' --csv -d '\t' --key b
  sluice dedup --csv -d ';' --key id --posterior --expect 10 --filter bloom --stats none table >out
  head -n 1 out | grep -qF 'text;sluice_posterior'
}

@test "--csv: a header with another delimiter is recognised" {
  printf 'id;n\n1;2,5\n1;2,6\n' >table
  refused 2 dedup --csv --key n table
  says "give --delimiter ';'"
  refused 2 dedup --csv --key 1 table
  says "give --delimiter ';'" "--delimiter ',' if it is one column"
  gives 'id;n\n1;2,5\n' --csv --key 1 -d , table
  gives 'id;n\n1;2,5\n1;2,6\n' --csv table
  printf 'id\tn\n1\t2\n' >table
  refused 2 dedup --csv --key n table
  says "give --delimiter '\\t'"
  refused 2 dedup --tsv --delimiter ';' table
  says '--csv with --delimiter'
  refused 2 dedup --csv --delimiter '"' table
  refused 2 dedup --csv --delimiter ';;' table
  refused 2 dedup --json --delimiter ';' table
}

@test "--ignore-case and --trim in every format, and never in what is written" {
  printf 'Ann\nANN\n ann \nÄnn\nänn\n' | gives 'Ann\n ann \nÄnn\n' --ignore-case
  printf 'Ann\nANN\n ann \nÄnn\nänn\n' | gives 'Ann\nÄnn\n' --ignore-case --trim
  printf 'k,v\n A ,1\na,2\n' | gives 'k,v\n A ,1\n' --csv --key k --ignore-case --trim
  printf 'k,v\n A ,1\na,"1"\n' | gives 'k,v\n A ,1\n' --csv --ignore-case --trim
  printf 'k\tv\n\ta\na\t\n' | gives 'k\tv\n\ta\na\t\n' --tsv --trim
  printf '{"k":"A"}\n{"k":" a"}\n{"k":1}\n' | gives '{"k":"A"}\n{"k":1}\n' --json --key /k --ignore-case --trim
  printf 'u=Ann;\nu=aNN;\n' | gives 'u=Ann;\n' --key-regex 'u=(\w+)' --ignore-case
  printf 'ann  1\nann\t 2\n' | gives 'ann  1\n' --key-bytes 1-5 --trim
  printf 'A 1\0a 2\0' | gives 'A 1\0' -0 -k 1 --ignore-case
  # A bad byte is no letter.
  printf '\xc3\nA\xc3\na\xc3\n' | gives '\xc3\nA\xc3\n' --ignore-case
}

@test "a state works only with the same rules for keys" {
  printf 'id=1\n' >log
  sluice dedup "${quiet[@]}" --state seen --key-regex 'id=(\d)' log >/dev/null
  refused 2 dedup --state seen --key-regex 'id=(\w)' log
  says 'key-regex'
  refused 2 dedup --state seen --key 1 log
  refused 2 dedup --state seen --key-regex 'id=(\d)' --ignore-case log
  says 'ignore-case'
  refused 2 dedup --state seen --key-regex 'id=(\d)' --trim log
  sluice dedup "${quiet[@]}" --state fixed --key-bytes 4 log >/dev/null
  refused 2 dedup --state fixed --key-bytes 3-4 log
  sluice dedup "${quiet[@]}" --state table --csv -d ';' <(printf 'a;b\n') >/dev/null
  refused 2 dedup --state table --csv <(printf 'a;b\n')
}

@test "one thread and two, pieces of any size: the same output" {
  lines_of "$(count 20000 500000)" | awk '{print NR, "id=" $1, toupper($1)}' >log
  sluice dedup --seed 1 --stats none --threads 1 --key-regex 'id=(\S+) (\S+)' log >one
  sluice dedup --seed 1 --stats none --threads 2 --key-regex 'id=(\S+) (\S+)' log >two
  cmp one two
  awk '!seen[$2]++' log | cmp - one
}

@test "prior tables take the keys of expressions, without case" {
  printf 'id=A b=x\nid=c b=y\n' >log
  printf 'a\tX\t0.5\n' >priors
  sluice dedup --key-regex 'id=(\w+) b=(\w+)' --ignore-case --prior-table priors --posterior \
    --expect 100 --filter bloom --stats none log >out
  [[ $(wc -l <out) -eq 2 ]]
  printf 'a\t0.5\n' >priors
  refused 2 dedup --key-regex 'id=(\w+) b=(\w+)' --prior-table priors --posterior --expect 100 --filter bloom log
  says 'fields'
}

@test "an expression with very many groups is refused" {
  refused 2 dedup --key-regex "$(printf '(%.0s' {1..101})a$(printf ')%.0s' {1..101})" /dev/null
  says "101 groups" "at most 100"
}
