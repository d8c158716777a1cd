#!/usr/bin/env bats
# How input is cut into records, and that every odd input has a clear outcome.
load helper

@test "lines: each goes through once, in order" {
  printf 'b\na\nb\n\na\n\nc\n' | gives 'b\na\n\nc\n'
}

@test "a carriage return is part of a line" {
  printf 'a\r\na\na\r\n' | gives 'a\r\na\n'
}

@test "a last line without newline stays so" {
  printf 'a\nb' | gives 'a\nb'
  printf 'a\nb\na' | gives 'a\nb\n'
  printf 'a\na' | gives 'a\n'
}

@test "a file that ends without newline does not run into the next one" {
  printf 'a\nb' >one
  printf 'c\nb\na' >two
  printf 'd' >three
  gives 'a\nb\nc\nd' one two three
  gives 'a\nb\nc\n' one two
}

@test "standard input among files" {
  printf 'a\n' >one
  printf 'b\n' >two
  printf 'a\nc' | gives 'a\nc\nb\n' one - two
}

@test "an empty input gives an empty output" {
  : >empty
  gives '' empty
  gives '' </dev/null
  printf 'a\n' >one
  gives 'a\n' empty one empty
}

@test "lines of no bytes" {
  printf '\n\n\n' | gives '\n'
}

@test "NUL bytes and invalid UTF-8 are bytes like others" {
  printf 'a\0b\na\0c\n\xff\xfe\na\0b\n\xff\xfe\n\xc3\n' | gives 'a\0b\na\0c\n\xff\xfe\n\xc3\n'
}

@test "-0: records end with NUL and may hold newlines" {
  printf 'a\nb\0c\0a\nb\0c' | gives 'a\nb\0c\0' -0
  printf 'a\0b' | gives 'a\0b' --null
  printf 'x' >one
  printf 'y\0' >two
  gives 'x\0y\0' -0 one two
}

@test "very long lines: twice the same, and one that differs in its last byte" {
  bytes=$(count 5000000 100000000)
  head -c "$bytes" /dev/zero | tr '\0' x >long
  {
    cat long && echo
    echo short
    cat long && echo y
    cat long && echo
    echo short
    cat long
  } >input
  sluice dedup "${quiet[@]}" input >out
  { cat long && echo && echo short && cat long && echo y; } | cmp - out
}

@test "--max-record stops at a longer record and writes what stands before it" {
  printf 'ab\nabc\nabcd\nab\n' >input
  run -1 --separate-stderr sluice dedup "${quiet[@]}" --max-record 3 input
  [ "$output" = $'ab\nabc' ]
  says input "record 3" --max-record
  gives 'ab\nabc\nabcd\n' --max-record 4 input
}

@test "a directory is refused" {
  mkdir folder
  refused 1 dedup folder
  says "'folder'" directory
}

@test "a missing file is refused" {
  refused 1 dedup no-such-file
  says "'no-such-file'" "No such file"
}

@test "a file without read permission is refused" {
  echo a >secret
  chmod 000 secret
  if [[ $EUID -ne 0 ]]; then
    refused 1 dedup secret
  else
    # Root reads everything: become nobody, with a copy of the command where nobody can reach it.
    place=$(mktemp -d)
    chmod 755 "$place"
    cp "$SLUICE" "$place/sluice"
    mv secret "$place/secret"
    run -1 --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups \
      "$place/sluice" dedup "$place/secret"
    rm -r "$place"
    [ -z "$output" ]
  fi
  says secret "Permission denied"
}

@test "an input that fails while it is read is an error, not an end" {
  # The first page of a process's memory is not there.
  refused 1 dedup --stats none /proc/self/mem
  says /proc/self/mem "cannot read"
}

@test "all inputs are opened before any is read" {
  echo a >one
  refused 1 dedup one no-such-file
  says no-such-file
  refused 1 dedup one no-such-file --output result
  [ ! -e result ]
}

@test "a line fed through a pipe comes out while the pipe stays open" {
  mkfifo feed
  start dedup "${quiet[@]}" feed
  exec 7>feed
  printf 'first\n' >&7
  eventually holds out 'first\n' >/dev/null
  printf 'first\nsecond\nthi' >&7
  eventually holds out 'first\nsecond\n' >/dev/null
  exec 7>&-
  ends_with 0
  holds out 'first\nsecond\nthi'
}

@test "archives, tables and files of other compressors are refused by their first bytes" {
  lines_of 100 >plain
  printf '\xfd7zXZ\0\0\4' >plain.xz
  printf 'BZh91AY&SY' >plain.bz2
  printf '\x04\x22\x4d\x18' >plain.lz4
  printf 'PK\3\4\x14' >plain.zip
  printf '7z\xbc\xaf\x27\x1c' >plain.7z
  printf 'PAR1\x15\4' >plain.parquet
  printf 'Obj\1\4' >plain.avro
  printf 'SQLite format 3\0' >plain.sqlite
  for file in plain.*; do
    refused 2 dedup --stats none "$file" -o result
    says "'$file' is" "not records" --binary
    refused 2 dedup --stats none <"$file"
    says "standard input is"
    # From a pipe, also in single bytes: dd reads and writes them so.
    refused 2 dedup --stats none <(dd if="$file" bs=1 count=20 status=none)
    refused 2 dedup --stats none plain "$file" -o result
    refused 2 dedup --stats none --forget "$file" plain
    refused 2 compare "$file"
    refused 2 repro --input "$file" --only fig5a koloniari
    [ ! -e result ]
    # Insisted upon, all is read, from a file and from a pipe.
    sluice dedup --stats none --binary --filter none "$file" | cmp "$file" -
    sluice dedup --stats none --binary --filter none <(cat "$file") | cmp "$file" -
  done
  refused 2 dedup plain.xz
  says "xz" "xzcat 'plain.xz' | sluice"
  refused 2 dedup plain.parquet
  says "Parquet" "convert it"
  # What only begins like one is read, to the last byte.
  for text in 'P' 'PK' 'PAR1,x\n' 'BZh9\n' '7z\n' 'SQLite\n' '\x1f\n' 'Q' 'Z*M' '\x28\xb5\x2f'; do
    printf '%b' "$text" | gives "$text"
    printf '%b' "$text" | dd bs=1 status=none | gives "$text"
    printf '%b' "$text" | dd bs=1 status=none | gives "$text" --threads 1
  done
}

@test "a byte order mark before JSON and before fields is skipped" {
  printf '\xef\xbb\xbf{"k":1}\n{"k":1}\n' >one
  printf '\xef\xbb\xbf{"k":2}\n{"k":1}\n' >two
  gives '{"k":1}\n{"k":2}\n' --json --key /k --strict one two
  printf '\xef\xbb\xbfa 1\na 2\n' | gives 'a 1\n' --key 1
  # Lines may hold any bytes.
  printf '\xef\xbb\xbfa\na\n' | gives '\xef\xbb\xbfa\na\n'
}

@test "closed standard streams are errors, not accidents" {
  printf 'a\n' >input
  run -1 --separate-stderr bash -c '"$SLUICE" dedup --stats none <&-'
  says "standard input"
  run -1 --separate-stderr bash -c '"$SLUICE" dedup --stats none input >&-'
  says "standard output"
  # Nobody hears the statistics, and they must not end in the next file opened.
  bash -c '"$SLUICE" dedup --expect 10 input --output result 2>&-'
  holds result 'a\n'
  bash -c '"$SLUICE" dedup --expect 10 input --output result 2>/dev/full'
  holds result 'a\n'
}

@test "a file may be named like a list" {
  echo 1 >a
  echo 2 >b
  echo 3 >'[a,b]'
  gives '3\n' '[a,b]'
  gives '1\n3\n2\n' a '[a,b]' b
  gives '1\n3\n' -- a '[a,b]'
  gives '' a -o '[o]'
  holds '[o]' '1\n'
}
