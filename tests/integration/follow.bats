#!/usr/bin/env bats
# sluice dedup --follow: files that grow, are rotated, truncated or not there yet.
load helper

follow=(dedup --follow --stats none)

# has FILE COUNT: so many lines.
has() { [[ -e $1 && $(wc -l <"$1") -eq $2 ]]; }

# told WORDS: on standard error.
told() { grep -qF -- "$1" err; }

# stop: the run ends cleanly.
stop() {
  kill -INT "$pid"
  ends_with 130
}

# noisy: with statistics, and so with what it says of files.
noisy=(dedup --follow)

@test "what comes to a file is judged when its line is complete" {
  printf 'a\nb\na\nhal' >log
  start "${follow[@]}" log
  eventually has out 2
  printf 'f\nb\nc\n' >>log
  eventually has out 4
  printf 'last' >>log
  stop
  holds out 'a\nb\nhalf\nc\n'
}

@test "statistics at the end, and at SIGUSR1" {
  seq 10 >log
  seq 5 >>log
  start dedup --follow --stats json log
  eventually has out 10
  kill -USR1 "$pid"
  eventually told '"records":15'
  stop
  [ "$(stat_of '[.records, .distinct, .duplicates, .interrupted] | @csv')" = '15,10,5,true' ]
}

@test "rotation: the rest of the old file, then the new one from its beginning" {
  seq 1 3 >log
  start "${noisy[@]}" log
  eventually has out 3
  mv log log.1
  eventually told "'log' is gone: waiting for it to appear again"
  seq 2 5 >>log.1
  eventually has out 5
  # The old file's last line has no newline: it is judged when the new file takes over.
  printf 6 >>log.1
  seq 1 10 >log
  eventually has out 10
  told "'log' was replaced: the old file was read to its end"
  # Again, by one step: a new file takes the name while the old one is written to.
  seq 11 12 >new
  mv log log.2
  mv new log
  echo 13 >>log.2
  eventually has out 13
  stop
  sort -n out >sorted
  seq 13 | cmp - sorted
  [ "$(sed -n 1,6p out | xargs)" = '1 2 3 4 5 6' ]
}

@test "a new file that is empty does not end the old one" {
  echo a >log
  start "${follow[@]}" log
  eventually has out 1
  mv log log.1
  : >log
  echo b >>log.1
  eventually has out 2
  echo c >>log
  eventually has out 3
  stop
  holds out 'a\nb\nc\n'
}

@test "truncation, and a file that was rewritten to more than it was" {
  seq 1 100 >log
  start "${follow[@]}" log
  eventually has out 100
  echo 101 >log
  eventually has out 101
  told "'log' was truncated or rewritten after 292 bytes of it were read"
  # Nothing looks at the file while it is short.
  kill -STOP "$pid"
  seq 102 500 >log
  kill -CONT "$pid"
  eventually has out 500
  stop
  seq 500 | cmp - out
}

@test "copytruncate: what only the copy has is read, too" {
  seq 1 20000 >log
  start "${follow[@]}" log
  eventually has out 20000
  # Nothing looks at the files while these are done.
  kill -STOP "$pid"
  seq 20001 20100 >>log
  cp log log.1
  seq 20101 20200 >log
  kill -CONT "$pid"
  eventually has out 20200
  told "'log.1' is a copy of it, whose rest is read"
  stop
  seq 20200 | cmp - out
}

@test "files that do not exist yet, and several at once" {
  seq 1 10 >a
  start "${noisy[@]}" a b deep/c
  eventually told "'b' does not exist: waiting for it to appear"
  told "'deep/c' does not exist: waiting for it to appear"
  seq 11 20 >b
  eventually has out 20
  mkdir deep
  seq 15 25 >deep/c
  eventually has out 25
  for i in $(seq 26 40); do
    echo "$i" >>a
    eventually has out "$i"
    echo "$i" >>b
  done
  stop
  seq 40 | cmp - out
}

@test "tables: the header of each file is read, and written once" {
  printf 'id,x\n1,a\n' >log.csv
  start "${follow[@]}" --csv --key id log.csv more.csv
  eventually has out 2
  printf 'id,x\n2,b\n1,c\n' >more.csv
  eventually has out 3
  mv log.csv old.csv
  printf 'id,x\n2,d\n3,"e\n' >log.csv
  printf 'f"\n' >>log.csv
  eventually has out 5
  stop
  holds out 'id,x\n1,a\n2,b\n3,"e\nf"\n'
  # A header that differs ends the run.
  start "${follow[@]}" --csv --key id more.csv
  eventually has out 8
  mv more.csv gone.csv
  printf 'x,id\n9,9\n' >more.csv
  ends_with 1
  told "its header 'x,id' differs from the first input's 'id,x'"
}

@test "what cannot be followed is refused" {
  refused 2 dedup --follow -
  says '--follow follows files by their names'
  refused 2 dedup --follow </dev/null
  says '--follow follows files by their names'
  mkfifo pipe
  refused 2 dedup --follow pipe
  says "'pipe' is not a regular file"
  seq 10 | gzip >log.gz
  refused 2 dedup --follow log.gz
  says "'log.gz' is compressed"
  # An output that takes the place of an input would be read for ever.
  start "${follow[@]}" late -o out2
  eventually ln out2 late
  ends_with 1
  told "'late' is now an output of this run"
}

@test "state: stopped and run again, over rotations in between" {
  local run=("${follow[@]}" --state s -o passed log)
  seq 1 30000 >log
  start "${run[@]}"
  eventually has passed 30000
  stop
  # Nothing is lost while it is down: neither the rest of the old file nor the new one.
  seq 30001 31000 >>log
  mv log log.1
  seq 30500 32000 >log
  start "${run[@]}"
  eventually has passed 32000
  stop
  # The same by copytruncate.
  seq 32001 32100 >>log
  cp log log.2
  seq 32101 32200 >log
  start "${run[@]}"
  eventually has passed 32200
  stop
  # A rotated file that has not grown is not read again, and nothing is said of it.
  mv log log.3
  seq 32201 32300 >log
  start "${run[@]}"
  eventually has passed 32300
  stop
  seq 32300 | cmp - passed
  [ "$(grep -c warning err)" -eq 0 ]
  # One that is nowhere is told.
  seq 32301 32400 >>log
  eventually test -e s
  rm log
  seq 32401 32500 >log
  start "${run[@]}"
  eventually has passed 32400
  told "'log' was read up to byte"
  told 'what was written to it after that is not read'
  stop
}

@test "state: killed at any moment, with a log that is rotated: nothing lost, nothing twice" {
  seeded
  local run=("${follow[@]}" --state s --checkpoint-every 1000 -o passed log)
  local rounds written=0 rotations=0 i
  rounds=$(count 6 100)
  : >log
  for ((i = 0; i < rounds; ++i)); do
    start "${run[@]}"
    # A file that is renamed before the run has opened it is none of its files.
    eventually opened log
    local parts=$((RANDOM % 3))
    for ((part = 0; part <= parts; ++part)); do
      seq $((written + 1)) $((written + 3000)) >>log
      written=$((written + 3000))
      if ((RANDOM % 3 == 0)); then
        rotations=$((rotations + 1))
        # Newest first, as logrotate names them.
        mv log "log.$rotations"
        : >log
        # A run that does not look between two rotations cannot know the file between them.
        eventually settled
      fi
    done
    local known=$((RANDOM % 2))
    if ((known)); then eventually settled; fi
    kill -KILL "$pid"
    wait "$pid" || true
    # Rotated while it is down: a file that it has read from is found again.
    if ((known)) && [[ -s log ]]; then
      rotations=$((rotations + 1))
      seq $((written + 1)) $((written + 300)) >>log
      mv log "log.$rotations"
      seq $((written + 301)) $((written + 500)) >log
      written=$((written + 500))
    fi
  done
  start "${run[@]}"
  eventually opened log
  eventually has passed "$written"
  stop
  seq "$written" | cmp - <(sort -n passed)
}

# opened FILE: by the run.
opened() { find "/proc/$pid/fd" -lname "$PWD/$1" 2>/dev/null | grep -q .; }

# settled: the run has read all that was written.
settled() { [[ -s passed && $(tail -n 1 passed) == "$written" ]]; }

@test "state: saved while idle, soon after something came, and not again" {
  echo a >log
  start "${follow[@]}" --state s --checkpoint-every 100ms -o passed log
  eventually grep -qs a passed
  echo b >>log
  eventually idle_saved
  before=$(stat -c %Y.%y s)
  # A later save would follow within a second or two; the next line makes one.
  echo c >>log
  eventually saved_after "$before"
  kill -KILL "$pid"
  wait "$pid" || true
  start "${follow[@]}" --state s -o passed log
  echo d >>log
  eventually has passed 4
  stop
  holds passed 'a\nb\nc\nd\n'
}

idle_saved() { sluice inspect --json s 2>/dev/null | grep -q '"keys":2'; }
saved_after() { [[ $(stat -c %Y.%y s) != "$1" ]]; }

@test "a compressed output can be read while the run waits" {
  echo 1 >log
  for name in out.gz out.zst; do
    unpack=$([ $name = out.gz ] && echo zcat || echo "zstd -dcq")
    start dedup --follow --stats none -o $name log
    # shellcheck disable=SC2086  # a command and its flags; the member is not ended yet
    readable() { { $unpack $name 2>/dev/null || true; } | grep -qx "$1"; }
    eventually readable 1
    echo 2 >>log
    eventually readable 2
    kill -INT "$pid"
    ends_with 130
    echo 1 >log
  done
}

@test "a log is not followed by the name that it is rotated to, too" {
  echo 1 >app.log
  echo 0 >app.log.1
  start dedup --follow --stats none -o out app.log app.log.1
  eventually grep -qx 0 out
  mv app.log.1 app.log.2
  mv app.log app.log.1
  ends_with 1
  told "'app.log.1' is now the file that is followed as 'app.log'"
}
