#!/usr/bin/env bats
# --key in every format, and what becomes of records without one.
load helper

@test "lines: fields between blanks, by number" {
  printf 'x  1\ny 1\nz\t2\n  x 3 1\n' | gives 'x  1\nz\t2\n  x 3 1\n' --key 2
  printf 'x  1\ny 1\nz\t2\n  x 3 1\n' | gives 'x  1\ny 1\nz\t2\n' -k 1
}

@test "lines: --delimiter" {
  printf 'a,1\nb,1\n,1,\nc,2\nd,\ne,\n' | gives 'a,1\nc,2\nd,\ne,\n' --key 2 --delimiter ,
  printf 'a\t1 x\nb\t1 x\nc\t1 y\n' | gives 'a\t1 x\nc\t1 y\n' -k 2 -d '\t'
  printf 'a,1\0b,1\0' | gives 'a,1\0' -0 -k 2 -d ,
}

@test "several fields make one key without ambiguity, in whatever way they are given" {
  printf 'a;bc\nab;c\na;bc\n' | gives 'a;bc\nab;c\n' -d ';' -k 1,2
  printf 'a;bc\nab;c\na;bc\n' | gives 'a;bc\nab;c\n' -d ';' -k 1 -k 2
  printf 'p,q\na,bc\nab,c\na,bc\n' | gives 'p,q\na,bc\nab,c\n' --csv --key p,q
  printf '{"p":"a","q":"bc"}\n{"p":"ab","q":"c"}\n{"q":"bc","p":"a"}\n' |
    gives '{"p":"a","q":"bc"}\n{"p":"ab","q":"c"}\n' --json --key /p,/q
  printf '{"p":"a","q":"b"}\n{"p":"b","q":"a"}\n{"q":"b","p":"a","r":0}\n' |
    gives '{"p":"a","q":"b"}\n{"p":"b","q":"a"}\n' --json --key /p --key /q
}

@test "csv: columns by name or number, the header passes once" {
  printf 'id,name\n1,ann\n2,bob\n1,cid\n' >table.csv
  gives 'id,name\n1,ann\n2,bob\n' --csv --key id table.csv
  gives 'id,name\n1,ann\n2,bob\n' --csv --key 1 table.csv
  gives 'id,name\n1,ann\n2,bob\n1,cid\n' --csv --key name table.csv
  gives 'id,name\n1,ann\n2,bob\n1,cid\n' --csv --key 2,1 table.csv
}

@test "csv: a quoted field may hold delimiters, quotes and newlines" {
  printf 'id,text\n1,"a\nb"\n2,"a\nb"\n3,"x, ""y"""\n4,"x, ""y"""\n5,plain\n6,"plain"\n' |
    gives 'id,text\n1,"a\nb"\n3,"x, ""y"""\n5,plain\n' --csv --key text
}

@test "csv: without a key the whole record, quoted or not" {
  printf 'a,b\n1,2\n"1",2\n1,2\n"1,2",\n' | gives 'a,b\n1,2\n"1,2",\n' --csv
}

@test "csv: carriage returns before newlines are no part of the last column" {
  printf 'id,n\r\n1,a\r\n2,a\n' | gives 'id,n\r\n1,a\r\n' --csv --key n
}

@test "tsv" {
  printf 'id\tn\n1\ta,b\n2\ta,b\n3\t"c\td"\n' | gives 'id\tn\n1\ta,b\n3\t"c\td"\n' --tsv --key n
}

@test "two tables: one header; another header is refused" {
  printf 'id,n\n1,a' >one.csv
  printf 'id,n\n1,b\n2,c\n' >two.csv
  printf 'n,id\n9,9\n' >other.csv
  : >empty.csv
  gives 'id,n\n1,a\n2,c\n' --csv --key id empty.csv one.csv two.csv
  run -1 --separate-stderr sluice dedup "${quiet[@]}" --csv --key id one.csv other.csv
  says other.csv "'n,id'" "'id,n'" --no-header
}

@test "--no-header: the first record is data" {
  printf '1,a\n1,a\n2,a\n' | gives '1,a\n' --csv --no-header --key 2
  refused 2 dedup --no-header one
  says --no-header
}

@test "a quote that is never closed: what became one record is told" {
  { echo id,n && printf '%s,a\n' 1 2 3 && echo '4,"b' && printf '%s,c\n' 5 6 7; } >open.csv
  sluice dedup --stats none --csv --key id open.csv >out 2>err
  cmp out open.csv
  grep -qF "input 'open.csv': in record 4 ('4,\"b'), a quote is opened and never closed" err
  grep -qF '4 lines (17 bytes)' err
  # Also where the key can be read, and where another input follows.
  printf 'id,n\n9,z\n' >next.csv
  sluice dedup --stats none --csv open.csv next.csv >out 2>err
  grep -qF '4 lines' err
  [ "$(tail -n 1 out)" = 9,z ]
  # Quotes that are closed, and a line that takes nothing with it.
  for end in '4,"b\nc"' '4,"b\n' '4,"b'; do
    # shellcheck disable=SC2059  # a text with escapes
    { echo id,n && printf "$end"; } >some.csv
    sluice dedup --stats none --csv --key id some.csv >out 2>err
    run ! grep -F 'never closed' err
  done
}

@test "an unknown column is refused with the columns there are" {
  printf 'id,name\n1,a\n' >table.csv
  refused 2 dedup --stats none --csv --key nme table.csv
  says "'nme' is no column; the columns are 'id', 'name': did you mean 'name'?"
  refused 2 dedup --stats none --csv --key ID table.csv
  says "did you mean 'id'?"
  refused 2 dedup --stats none --csv --key price table.csv
  [[ $stderr != *"did you mean"* ]]
  refused 2 dedup --stats none --csv --key 3 table.csv
  says "'3'" "'id', 'name'"
}

@test "json: 1 and \"1\" differ; 1, 1.0 and 1e0 are one key" {
  printf '{"k":1}\n{"k":"1"}\n{"k":1.0}\n{"k":1e0}\n{"k":10e-1}\n{"k":true}\n{"k":"true"}\n' |
    gives '{"k":1}\n{"k":"1"}\n{"k":true}\n{"k":"true"}\n' --json --key /k
}

@test "json: objects are equal whatever the order of members and the spaces" {
  printf '%s\n' '{"k":{"a":1,"b":[1,2]}}' '{"k": { "b" : [1, 2.0], "a":1 } }' \
    '{"k":{"a":1,"b":[2,1]}}' '{"k":[{"b":1,"a":2}]}' '{"k":[{"a":2,"b":1}]}' |
    gives '{"k":{"a":1,"b":[1,2]}}\n{"k":{"a":1,"b":[2,1]}}\n{"k":[{"b":1,"a":2}]}\n' --json -k /k
  # Without a key the whole record.
  printf '{"a":1,"b":2}\n{"b":2, "a":1}\n' | gives '{"a":1,"b":2}\n' --json
}

@test "records with an empty key are passed through, unless --empty-keys says that it is one" {
  printf 'id,n\n1,a\n,b\n,c\n1,d\n"",e\n,\n' >table.csv
  gives 'id,n\n1,a\n,b\n,c\n"",e\n,\n' --csv --key id table.csv
  gives 'id,n\n1,a\n,b\n' --csv --key id --empty-keys table.csv
  sluice dedup --stats json --csv --key id table.csv 2>err >out
  stat_of '.unkeyed == 4 and .malformed == 0 and .duplicates == 1 and (.faults | length) == 3' | grep -qx true
  [ "$(stat_of '.faults[0].reason')" = "the key (column 'id') is empty in ',b'" ]
  sluice count --csv --key id table.csv --stats json >out
  jq -e '.records == 6 and .unkeyed == 4 and .distinct.value == 1 and .duplicates.value == 1' out
  sluice count --csv --key id --empty-keys table.csv --stats json >out
  jq -e '.unkeyed == 0 and .distinct.value == 2 and .duplicates.value == 4' out
  refused 1 dedup --csv --key id --strict --stats none table.csv -o strict
  says "table.csv: record 2: the key (column 'id') is empty in ',b'"
  # Of several fields, all of them.
  printf 'a,b\n,\n,\n,x\n,x\n"",\n' | gives 'a,b\n,\n,\n,x\n"",\n' --csv --key a,b
  printf 'a\tb\n\t1\n\t2\n' | gives 'a\tb\n\t1\n\t2\n' --tsv --key a
  printf 'a,b\n ,1\n\t,2\n' >blank.csv
  gives 'a,b\n ,1\n\t,2\n' --csv --key a --trim blank.csv
  gives 'a,b\n ,1\n' --csv --key a --trim --empty-keys blank.csv
  # Fields, groups and bytes of lines.
  printf 'x,\ny,\n' | gives 'x,\ny,\n' --key 2 -d ,
  printf 'x,\ny,\n' | gives 'x,\n' --key 2 -d , --empty-keys
  printf 'id= a\nid= b\nid=1 c\nid=1 d\n' | gives 'id= a\nid= b\nid=1 c\n' --key-regex 'id=(\d*)'
  printf 'id=;u= a\nid=;u= b\nid=;u=1 c\nid=;u=1\n' |
    gives 'id=;u= a\nid=;u= b\nid=;u=1 c\n' --key-regex 'id=(\d*);(?:u=(\d+))?(?:u=(\d*))?'
  printf 'ab\ncd\n' | gives 'ab\ncd\n' --key-bytes 3-
  printf 'ab\ncd\n' | gives 'ab\n' --key-bytes 3- --empty-keys
  printf 'a  \nb  \n' | gives 'a  \nb  \n' --key-bytes 2-3 --trim
  # A whole record may be empty.
  printf '\na\n\n\n' | gives '\na\n'
  printf 'a,b\n,\n,\n' | gives 'a,b\n,\n' --csv
}

@test "--empty-keys changes keys: a state works only with the same" {
  printf 'id\n1\n' >table.csv
  sluice dedup --stats none --csv --key id --state s table.csv >out
  refused 2 dedup --stats none --csv --key id --state s --empty-keys table.csv
  says "empty-keys=yes"
  # It says nothing of whole records.
  sluice dedup --stats none --state t table.csv >out
  sluice dedup --stats none --state t --empty-keys table.csv >again
}

@test "json: a missing member is no key, and null and \"\" only with --empty-keys" {
  printf '{"k":null}\n{"x":1}\n{"k":null}\n{"x":1}\n{"k":""}\n{"k":""}\n' >in
  gives '{"k":null}\n{"x":1}\n{"k":null}\n{"x":1}\n{"k":""}\n{"k":""}\n' --json --key /k in
  gives '{"k":null}\n{"x":1}\n{"x":1}\n{"k":""}\n' --json --key /k --empty-keys in
  printf '{"k":null,"l":""}\n{"k":null,"l":""}\n{"k":null,"l":0}\n{"k":null,"l":0}\n' |
    gives '{"k":null,"l":""}\n{"k":null,"l":""}\n{"k":null,"l":0}\n' --json --key /k,/l
  printf '{"k":[]}\n{"k":[]}\n{"k":false}\n{"k":false}\n' | gives '{"k":[]}\n{"k":false}\n' --json --key /k
}

@test "json: pointers reach into objects and arrays, and may hold commas" {
  printf '%s\n' '{"u":{"id":7},"t":[5,6]}' '{"u":{"id":7},"t":[1,6]}' '{"u":{"id":7},"t":[1,2]}' |
    gives '{"u":{"id":7},"t":[5,6]}\n{"u":{"id":7},"t":[1,2]}\n' --json --key /u/id,/t/1
  printf '{"a,b":1,"c":1}\n{"a,b":1,"c":2}\n{"a,b":2,"c":1}\n' |
    gives '{"a,b":1,"c":1}\n{"a,b":2,"c":1}\n' --json --key /a,b
  printf '{"a,b":1,"c":1}\n{"a,b":1,"c":2}\n{"a,b":1,"c":1}\n' |
    gives '{"a,b":1,"c":1}\n{"a,b":1,"c":2}\n' --json --key /a,b --key /c
  printf '{"a/b":1,"m~n":1}\n{"a/b":1,"m~n":1,"x":0}\n' | gives '{"a/b":1,"m~n":1}\n' --json -k /a~1b,/m~0n
}

@test "records without a key or malformed pass in their places and are counted" {
  printf '%s\n' '{"k":1}' 'no json' '{"k":1}' '{"x":1}' 'no json' '{"k":2}' '' '{"k":2' '{"k":2}' >input
  sluice dedup --json --key /k --stats json --expect 10 input >out 2>err
  holds out '{"k":1}\nno json\n{"x":1}\nno json\n{"k":2}\n\n{"k":2\n'
  [ "$(stat_of '[.records,.distinct,.duplicates,.unkeyed,.malformed]|join(" ")')" = "9 2 2 5 4" ]
}

@test "--strict stops at the first record without the key, by its number" {
  printf 'a 1\nb 1\nc\nd 2\n' >input
  run -1 --separate-stderr sluice dedup "${quiet[@]}" --strict --key 2 input
  [ "$output" = "a 1" ]
  says "input: record 3: there is no field 2 in 'c': mend it, or run without --strict"
  printf '{"k":1}\n{"k":\n' >input
  run -1 --separate-stderr sluice dedup "${quiet[@]}" --strict --json --key /k input
  [ "$output" = '{"k":1}' ]
  says "input: record 2: '{\"k\":' is not JSON"
}

@test "when no record has the key, a warning says so" {
  printf '{"user":1}\n{"user":2}\n' >input
  run -0 --separate-stderr sluice dedup "${quiet[@]}" --json --key /usr input
  says warning --key
}

@test "keys that do not fit the format are refused" {
  echo a >input
  refused 2 dedup --key name input
  says "'name'" "field number"
  refused 2 dedup --key 0 input
  says "'0'"
  refused 2 dedup --json --key user input
  says "'/user'"
  refused 2 dedup --csv --json input
  says exclude
  refused 2 dedup --delimiter , input
  says --delimiter
  refused 2 dedup --delimiter ab --key 1 input
  says "'ab'"
}

@test "keys that cannot be: the flag is named, and the input that lacks a column" {
  printf 'id,n\n1,a\n' >one.csv
  refused 2 dedup "${quiet[@]}" --csv --key nosuch one.csv
  says "one.csv: --key 'nosuch' is no column" "'id', 'n'"
  refused 2 dedup "${quiet[@]}" --csv --key id,nosuch one.csv
  says "--key 'id,nosuch': 'nosuch'"
  refused 2 dedup "${quiet[@]}" --csv --key id --window 1h --event-time t one.csv
  says "one.csv: --event-time 't' is no column"
  refused 2 dedup "${quiet[@]}" --json --key user one.csv
  says "--key 'user'" "'/user'"
  refused 2 dedup "${quiet[@]}" --json --key '/a~2' one.csv
  says "--key '/a~2'"
  refused 2 dedup "${quiet[@]}" --key x one.csv
  says "--key 'x' is no field number"
}

@test "a byte order mark in one of several tables makes no other header" {
  printf 'id,n\n1,a\n' >one.csv
  printf '\xef\xbb\xbfid,n\n1,b\n2,c\n' >two.csv
  gives 'id,n\n1,a\n2,c\n' --csv --key id one.csv two.csv
  gives '\xef\xbb\xbfid,n\n1,b\n2,c\n' --csv --key id two.csv one.csv
}

@test "a newline separates no fields of lines, but those of NUL records" {
  echo a >input
  refused 2 dedup input --key 1 -d $'\n'
  says --delimiter newline
  printf 'a\n1\0b\n1\0' | gives 'a\n1\0' -0 --key 2 -d $'\n'
}

@test "a path of jq or JSONPath is refused, and the pointer suggested" {
  echo '{"user":{"id":1},"items":[{"id":2}]}' >input
  while read -r path pointer; do
    refused 2 dedup --json --key "$path" input
    says "'$path' is not a JSON Pointer" "did you mean '$pointer'?"
    sluice dedup --strict --stats none --json --key "$pointer" input >out
    cmp input out
  done <<'END'
.user.id /user/id
user.id /user/id
user/id /user/id
$.user.id /user/id
.user["id"] /user/id
$['user']['id'] /user/id
.items[0].id /items/0/id
$.items[0].id /items/0/id
.["items"][0] /items/0
.user.id,.items[0].id /user/id,/items/0/id
user.id,items /user/id,/items
END
  refused 2 dedup --json --key . input
  [[ $stderr != *"did you mean"* ]]
}
