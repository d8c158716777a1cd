#!/usr/bin/env bats
# sluice dedup --follow: files that grow, are rotated, truncated or not there yet.
load helper

# Exact: by its own statistics, the default filter loses a line in one of 250 runs over 90,000 lines.
follow=(dedup --follow --stats none --filter exact)

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

# written_after FILE: what is written from now on has another time.
written_after() { : >clock && [[ clock -nt $1 ]]; }

# rotated NAME WORD: the log gets that name, and a new one begins, with five lines.
rotated() {
  mv log "$1"
  eventually written_after "$1"
  seq 5 | sed "s/^/$2/" >log
}

lines_with() { for word in "$@"; do seq 5 | sed "s/^/$word/"; done; }

@test "rotated more than once between two looks: the files in between are read, in their order" {
  local names
  for names in 'log.a log.b log.c' 'log.3 log.2 log.1' 'log-20240131 log-20240201 log-20240202'; do
    read -ra names <<<"$names"
    rm -f log* out
    lines_with a >log
    # An old one that gets its next number is not one of them, nor is another log, though it is rotated, too.
    echo old >log.8
    echo other >log.json
    eventually written_after log.json
    seq 5 | sed 's/^/a/' >new
    mv new log
    start "${noisy[@]}" log
    eventually has out 5
    eventually looked
    kill -STOP "$pid"
    mv log.8 log.9
    mv log.json log.json.1
    echo another >log.json
    # Nor is one whose name goes on with a digit, as node10 after node1.
    echo tenth >log10
    rotated "${names[0]}" b
    rotated "${names[1]}" c
    rotated "${names[2]}" d
    # A copy of what was read.
    cp "${names[0]}" log.0
    kill -CONT "$pid"
    eventually has out 20
    stop
    lines_with a b c d | cmp - out
    told "'log' was rotated more than once between two looks: '${names[1]}' came in between"
    run ! told warning
  done
}

# looked: it waits for the file to change, and so knows what is beside it.
looked() { grep -q '^State:.*sleeping' "/proc/$pid/status" && grep -qE 'poll' "/proc/$pid/wchan"; }

@test "a log that is rotated in a fast loop: all of it is read" {
  local word
  lines_with a >log
  start "${follow[@]}" --state s -o passed log
  eventually has passed 5
  for word in b c d e f g h; do
    mv log "log.$word"
    seq 5 | sed "s/^/$word/" >log
  done
  eventually has passed 40
  stop
  lines_with a b c d e f g h | cmp - <(sort passed)
}

# Names change while they are looked at. Records without a key pass, also the second time.
@test "logs that shift their numbers in a fast loop: each is read once" {
  local i runs pids=()
  seeded
  runs=$(count 8 40)
  for ((i = 0; i < runs; ++i)); do
    mkdir "$i" && cd "$i"
    : >log
    start "${follow[@]}" --key 2 --state s -o passed log
    pids+=("$pid")
    eventually looked
    "$BATS_TEST_DIRNAME/shift_logs.py" "$RANDOM"
    cd ..
  done
  for ((i = 0; i < runs; ++i)); do
    pid=${pids[i]}
    eventually has_line "$i/passed" last || fail "run $i: $(cat "$i/err")"
    stop
    sort "$i/passed" | cmp - <(printf '%s\n' 0 1 2 3 4 5 6 last) || fail "run $i: $(cat "$i/err")"
  done
}

@test "rotated more than once while the reader of the output waits" {
  mkfifo drain
  seq 5 >log
  "$SLUICE" "${follow[@]}" log >drain 2>err 3>&- &
  pid=$!
  started+=("$pid")
  exec 8<drain
  head -c 10 <&8 >rest
  kill -STOP "$pid"
  seq 6 900000 >>log
  kill -CONT "$pid"
  eventually waits_within log
  mv log log.2
  seq 900001 900100 >log
  mv log log.1
  seq 900101 900200 >log
  cat <&8 >>rest &
  started+=("$!")
  exec 8<&-
  eventually has rest 900200
  stop
  seq 900200 | cmp - rest
}

@test "a log that comes and is rotated before it is seen is read" {
  start "${noisy[@]}" log
  eventually told 'waiting for it to appear'
  eventually looked
  kill -STOP "$pid"
  seq 5 | sed 's/^/a/' >log
  rotated log.2 b
  rotated log.1 c
  kill -CONT "$pid"
  eventually has out 15
  stop
  lines_with a b c | cmp - out
}

@test "stopped just after a log was rotated twice: the state knows all, and without one they are named" {
  local state
  for state in '' s; do
    rm -f log* out
    lines_with a >log
    start dedup --follow --filter exact ${state:+--state s} log
    eventually has out 5
    eventually looked
    kill -STOP "$pid"
    rotated log.2 b
    rotated log.1 c
    kill -INT "$pid"
    kill -CONT "$pid"
    ends_with 130
    if [[ -z $state ]]; then
      told "files was read: 'log.1' (15 bytes), 'log' (15 bytes)"
      continue
    fi
    told 'nothing that was read is lost'
    start dedup --follow --filter exact --state s log
    eventually has out 15
    stop
    lines_with a b c | cmp - out
  done
}

@test "state: several files that came in between and were not read before a stop are read in their order" {
  local i
  echo 1 >log
  start "${follow[@]}" --state s log
  eventually has out 1
  eventually looked
  kill -STOP "$pid"
  for i in 1 2 3 4 5; do
    mv log "log-2026010$i"
    eventually written_after "log-2026010$i"
    echo $((i + 1)) >log
  done
  kill -INT "$pid"
  kill -CONT "$pid"
  ends_with 130
  start "${follow[@]}" --state s log
  eventually has out 6
  stop
  seq 6 | cmp - out
}

@test "state: only the files of the state itself are no rotated files, whatever it is called" {
  local state
  for state in lo log.state ./log.state; do
    rm -f lo* out
    lines_with a >log
    start "${noisy[@]}" --state "$state" log
    eventually has out 5
    eventually test -e "$state"
    eventually looked
    kill -STOP "$pid"
    rotated log.2 b
    rotated log.1 c
    kill -CONT "$pid"
    eventually has out 15
    stop
    lines_with a b c | cmp - out
    run ! told warning
  done
}

@test "another log that begins alike is no copy: neither by its name, nor if it is followed itself" {
  local other
  for other in log10 log.x; do
    rm -f log* out err s s.*
    printf 'id,pad\n' | tee log >"$other"
    start "${noisy[@]}" --stats none --csv --key id --window 3 --state s log "$other"
    eventually read_all log
    eventually looked
    kill -STOP "$pid"
    mv "$other" "$other.1"
    { printf 'id,pad\n' && seq 8 | sed 's/$/,abc/'; } >"$other"
    printf '100,a\n' >>log
    kill -CONT "$pid"
    eventually has out 10
    eventually looked
    stop
    [ "$(sort -n out | tail -n +2 | cut -d, -f1 | tr '\n' ' ')" = '1 2 3 4 5 6 7 8 100 ' ]
    run ! told 'is a copy of it'
  done
  # Nor if it is not followed at all.
  rm -f log* out err s s.*
  printf 'id,pad\n' | tee log >log10
  start "${noisy[@]}" --stats none --csv --key id --state s log
  eventually read_all log
  eventually looked
  seq 6 | sed 's/$/,abc/' >>log10
  printf '100,a\n' >>log
  eventually has out 2
  eventually looked
  stop
  holds out 'id,pad\n100,a\n'
}

@test "a rotated file belongs to the longest name that is followed and that it begins with" {
  local run=("${noisy[@]}" --state s -o passed app.log app.log.err ./app.log.err.now)
  echo a0 >app.log
  echo e0 >app.log.err
  : >app.log.err.now
  start "${run[@]}"
  eventually has passed 2
  eventually looked
  kill -STOP "$pid"
  rotate_both 1
  kill -CONT "$pid"
  eventually has passed 7
  told "'app.log.err.12' came in between, and is read before 'app.log.err'"
  stop
  run ! told warning
  rotate_both 2
  start "${run[@]}"
  eventually has passed 11
  stop
  # One of its two files in between is not known to the state.
  told "'app.log.err' seems to have been rotated more than once while nothing followed it: 'app.log.err.22' may hold"
  [ "$(grep -c warning err)" -eq 1 ]
}

# rotate_both WORD: app.log once, app.log.err twice.
rotate_both() {
  local i
  for i in 1 2; do
    echo "e$1$i" >>app.log.err
    mv app.log.err "app.log.err.$1$i"
    : >app.log.err
  done
  echo "a$1" >>app.log
  mv app.log "app.log.$1"
  echo "a$1." >app.log
  echo "e$1." >app.log.err
}

@test "a copy of another log that is followed is not taken for one of a log that was emptied" {
  local name
  for name in b a.err; do
    rm -f a* b* out
    printf 'id,pad\n1,x\n' | tee a >"$name"
    start "${follow[@]}" --csv --key id --window 2 a "$name"
    eventually has out 2
    eventually read_all "$name"
    eventually looked
    kill -STOP "$pid"
    printf '2,b\n3,b\n4,b\n' >>"$name"
    cp "$name" "$name.1"
    printf 'id,pad\n9,b\n' >"$name"
    printf 'id,pad\n5,a\n' >a
    kill -CONT "$pid"
    eventually has_line out 9,b
    eventually has_line out 5,a
    told "'$name.1' is a copy of it"
    [ "$(grep -c 'is a copy of it' err)" -eq 1 ]
    stop
  done
}

@test "a file that may have come in between is told, and then it is not said that nothing is lost" {
  lines_with a >log
  start "${noisy[@]}" --state s log
  eventually has out 5
  eventually looked
  kill -STOP "$pid"
  rotated log.2 b
  rotated log.1 c
  # The first one is a copy of what was read, the other one is not.
  gzip log.2 log.1
  kill -CONT "$pid"
  eventually has out 10
  stop
  lines_with a c | cmp - out
  told "warning: 'log.1.gz' has come beside 'log' while that was rotated: it may hold records that are not read"
  told 'the state is saved'
  run ! told log.2.gz
  run ! told 'is lost'
  # The old file was replaced under its new name.
  rm log*
  lines_with d >log
  echo older >log.old
  start "${noisy[@]}" --abandon --state s log
  eventually has out 15
  eventually looked
  kill -STOP "$pid"
  rotated log.old e
  rotated log.old f
  kill -CONT "$pid"
  eventually has out 20
  stop
  told "warning: 'log.old' has come beside 'log' while that was rotated"
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

@test "a file that was rewritten to the length that it had is read again" {
  seq 1000 1999 >log
  start "${follow[@]}" log
  eventually has out 1000
  # Nothing looks at the file while it is short.
  kill -STOP "$pid"
  seq 2000 2999 >log
  kill -CONT "$pid"
  eventually has out 2000
  told "'log' was truncated or rewritten after 5,000 bytes of it were read"
  # Not so one that was only touched, or written to with what it held.
  touch log
  seq 2000 2999 | dd of=log conv=notrunc status=none
  seq 3000 3001 >>log
  eventually has out 2002
  stop
  [ "$(grep -c warning err)" -eq 1 ]
  seq 1000 3001 | cmp - out
}

@test "without a state, what was not read of rotated files is told at the end" {
  seq 1 3 >log
  start "${follow[@]}" log
  eventually has out 3
  # Nothing looks at the files while these are done.
  kill -STOP "$pid"
  mv log log.1
  printf 'rest' >>log.1
  seq 4 9 >log
  kill -INT "$pid"
  kill -CONT "$pid"
  ends_with 130
  told "warning: stopped before what is left of these files was read: 'log.1' (4 bytes), 'log' (12 bytes); without --state"
  # Not of a file that is still there, and not with a state.
  start "${follow[@]}" --state s log
  eventually has out 9
  kill -STOP "$pid"
  mv log log.2
  seq 4 9 >log
  kill -INT "$pid"
  kill -CONT "$pid"
  ends_with 130
  run ! told warning
  rm out
  start "${follow[@]}" log
  eventually has out 6
  printf 'rest' >>log
  stop
  run ! told warning
}

# blocked FILE: more comes to it than the reader of the output takes, and the run waits for that within the file.
blocked() {
  kill -STOP "$pid"
  seq 6 900000 >>"$1"
  kill -CONT "$pid"
  eventually waits_within "$1"
}

# drained: the run is told to stop and ends. What it has written is in ./rest.
drained() {
  kill -INT "$pid"
  cat <&8 >>rest
  exec 8<&-
  ends_with 130
}

# left_of FILE: its bytes that are not in ./rest, which has all that was read of it, and begins with HEAD bytes of
# others.
left_of() { echo $(($(stat -c %s "$1") - $(stat -c %s rest) + $2)); }

@test "without a state, a new file that is partly read at the end is told" {
  mkfifo drain
  echo 0 >log
  "$SLUICE" "${noisy[@]}" log >drain 2>err 3>&- &
  pid=$!
  started+=("$pid")
  exec 8<drain
  head -c 2 <&8 >rest
  mv log log.1
  seq 1 900000 >log
  eventually told 'now reading the new one'
  eventually waits_within log
  drained
  told "stopped before what is left of these files was read: 'log' ($(size_text "$(left_of log 2)")); without --state"
}

# size_text BYTES: as the command writes them, from a KiB on.
size_text() { awk -v b="$1" 'BEGIN { print b < 1048576 ? sprintf("%.1f KiB", b / 1024) : sprintf("%.1f MiB", b / 1048576) }'; }

@test "without a state, what was not read of a copy, of new logs and of a long one is told at the end" {
  mkfifo drain
  seq 1 5 >a
  echo b1 >b
  : >c
  "$SLUICE" "${follow[@]}" a b c later >drain 2>err 3>&- &
  pid=$!
  started+=("$pid")
  exec 8<drain
  head -c 13 <&8 >rest
  blocked a
  # Nothing looks at these files any more.
  echo b2 >>b
  cp b b.1
  echo three >b
  echo c1 >>c
  mv c c.1
  echo c22 >c
  echo x >later
  drained
  told "warning: 'b' was truncated or rewritten after 3 bytes of it were read: 'b.1' is a copy of it"
  told "files was read: 'b.1' (3 bytes), 'a' ($(size_text "$(left_of a 3)")), 'b' (6 bytes), 'c.1' (3 bytes), 'later' (2 bytes), 'c' (4 bytes); without --state"
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

@test "copytruncate twice between two looks: a copy that does not begin as what was read is told" {
  local state
  for state in '' s; do
    rm -f log* out
    echo r0 >log
    start "${noisy[@]}" --filter exact ${state:+--state s} log
    eventually has out 1
    eventually looked
    kill -STOP "$pid"
    echo A1 >>log
    cp log log.1
    echo B1 >log
    echo B2 >>log
    mv log.1 log.2
    cp log log.1
    # A copy of what the log holds now is no such file.
    echo C1 | tee log >log.3
    kill -CONT "$pid"
    eventually has out 3
    told "'log.2' is a copy of it, whose rest is read"
    told "warning: 'log.1' has come beside 'log' while that was truncated or rewritten: it may hold records that are not read"
    run ! told "'log.2' has come"
    stop
    holds out 'r0\nA1\nC1\n'
    run ! told 'is lost'
    # Once is nothing to tell.
    rm -f log* out s s.*
    seq 100 >log
    start "${noisy[@]}" --filter exact ${state:+--state s} log
    eventually has out 100
    eventually looked
    kill -STOP "$pid"
    seq 101 110 >>log
    cp log log.1
    gzip -k log.1
    echo 111 >log
    kill -CONT "$pid"
    eventually has out 111
    stop
    [ "$(grep -c warning err)" -eq 1 ]
  done
}

@test "copytruncate: a copy of the log is not taken for what was delivered" {
  seq 1 20000 >log
  start "${follow[@]}" --state s -o passed log
  eventually has passed 20000
  # Files with the same bytes, in any order of the folder.
  cp passed a.backup
  cp passed z.backup
  kill -STOP "$pid"
  seq 20001 20100 >>log
  cp log log.1
  seq 20101 20200 >log
  kill -CONT "$pid"
  eventually has passed 20200
  stop
  seq 20200 | cmp - passed
  # The same while nothing follows it.
  cp passed a.backup
  cp passed z.backup
  seq 20201 20300 >>log
  cp log log.1
  seq 20301 20310 >log
  start "${follow[@]}" --state s -o passed log
  eventually has passed 20310
  stop
  seq 20310 | cmp - passed
}

@test "copytruncate while what was read is being written" {
  mkfifo drain
  local first
  for first in 0 300; do
    rm -f log* rest
    seq "$first" >log
    "$SLUICE" "${follow[@]}" log >drain 2>err 3>&- &
    pid=$!
    started+=("$pid")
    exec 8<drain
    if ((first > 0)); then head -c 1092 <&8 >rest; fi
    # More than buffers and a pipe take: the run waits for its reader in the middle of the file.
    kill -STOP "$pid"
    seq $((first + 1)) 900000 >>log
    kill -CONT "$pid"
    eventually waits_within log
    seq 900001 900100 >>log
    cp log log.1
    seq 900101 900200 >log
    cat <&8 >>rest &
    started+=("$!")
    exec 8<&-
    eventually has rest 900200
    told "'log.1' is a copy of it, whose rest is read"
    stop
    seq 900200 | cmp - rest
  done
}

# waits_within FILE: the run has read a part of it, and sleeps.
waits_within() {
  local number read
  number=$(find "/proc/$pid/fd" -lname "$PWD/$1" -printf %f)
  [[ -n $number ]] || return 1
  read=$(sed -n 's/^pos:[^0-9]*//p' "/proc/$pid/fdinfo/$number")
  [[ $read -gt 2000 && $read -lt $(stat -c %s "$1") ]] && grep -q '^State:.*sleeping' "/proc/$pid/status"
}

@test "copytruncate at any moment after a write" {
  seeded
  : >log
  start "${follow[@]}" -o passed log
  timeout "$limit_s" python3 - "$RANDOM" "$(count 40 400)" <<'PYTHON'
import os, random, shutil, sys, time

chance = random.Random(int(sys.argv[1]))
log = os.open("log", os.O_WRONLY | os.O_APPEND)
written = size = 0


def write(count):
    global written, size
    lines = "".join(f"{written + i + 1}\n" for i in range(count)).encode()
    os.write(log, lines)
    written += count
    size += len(lines)


def wait():
    while not os.path.exists("passed") or os.path.getsize("passed") < size:
        time.sleep(0.001)


for rotation in range(int(sys.argv[2])):
    # A file of which nothing was read has no bytes by which a copy could be known.
    write(5)
    wait()
    write(2000)
    time.sleep(chance.choice([0, 0.0002, 0.0005, 0.001, 0.002, 0.005]))
    write(10)
    time.sleep(chance.choice([0, 0, 0.0002, 0.0005, 0.001, 0.002]))
    shutil.copy2("log", f"log.{rotation}")
    os.ftruncate(log, 0)
    wait()
PYTHON
  stop
  seq $((2015 * $(count 40 400))) | cmp - passed
  run ! told 'is lost'
}

@test "rotations that delete old logs: a new one may get the inode of one that was read" {
  local i
  echo start >log
  start "${follow[@]}" log
  eventually has out 1
  for i in 1 2 3 4 5 6; do
    echo "a$i" >>log
    if [[ -e log.1 ]]; then mv log.1 log.2; fi
    mv log log.1
    echo "b$i" >>log
    # A run that does not look between two rotations cannot know the file between them. Not faster: inodes of
    # files are free again when the run has closed them, a second after they were replaced.
    eventually opened log
    sleep 0.3
  done
  eventually has out 13
  stop
  { echo start && for i in 1 2 3 4 5 6; do printf 'a%s\nb%s\n' $i $i; done; } | cmp - out
}

@test "state: one of several logs is rotated, and the same command goes on" {
  local how signal run=("${follow[@]}" --state s -o passed a b)
  for how in while_running while_down; do
    for signal in INT KILL; do
      rm -f a* b* s s.* passed
      echo a1 >a
      echo b1 >b
      start "${run[@]}"
      eventually has passed 2
      if [[ $how == while_running ]]; then
        mv a a.1
        echo a2 >a
        eventually has passed 3
        eventually knows_new a
      fi
      kill "-$signal" "$pid"
      wait "$pid" || true
      if [[ $how == while_down ]]; then
        mv a a.1
        echo a2 >a
      fi
      echo b2 >>b
      start "${run[@]}"
      eventually has passed 4
      stop
      printf 'a1\na2\nb1\nb2\n' | cmp - <(sort passed)
    done
  done
}

# knows_new FILE: the state knows the file that has the name, and not the one before.
knows_new() { sluice inspect s | grep -q "input 2 of 2, '$1'"; }

@test "state: a log of which nothing was read, copied and truncated while the run is down, is told" {
  local run=("${follow[@]}" --state s -o passed log)
  : >log
  start "${run[@]}"
  eventually test -e s
  stop
  printf '%s\n' one two >>log
  cp -p log log.1
  echo three >log
  start "${run[@]}"
  eventually has passed 1
  told "'log.1' may hold records that were not read"
  stop
}

@test "state: copied and truncated, then moved while the run is down: the file between them is told" {
  local run=("${follow[@]}" --state s -o passed log)
  seq 1000 >log
  start "${run[@]}"
  eventually has passed 1000
  stop
  cp log log.1
  # It has the inode of the file that was read.
  seq 1001 1010 >log
  mv log.1 log.2
  mv log log.1
  seq 1011 1020 >log
  start "${run[@]}"
  eventually has passed 1010
  told "'log.1' may hold records that were not read"
  stop
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
  # Nor of empty ones, and of those that were read to their ends by a run before, after two rotations.
  mv log log.4
  : >log
  mv log log.5
  : >log
  start "${run[@]}"
  eventually test -e s
  mv log log.6
  seq 32301 32302 >log
  eventually has passed 32302
  stop
  mv log log.7
  : >log
  mv log log.8
  seq 32303 32304 >log
  start "${run[@]}"
  eventually has passed 32304
  stop
  [ "$(grep -c warning err)" -eq 0 ]
  # One that is nowhere is told.
  seq 32301 32400 >>log
  eventually test -e s
  rm log
  seq 32401 32500 >log
  start "${run[@]}"
  eventually has passed 32404
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
        eventually opened log
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

@test "state: a file that came while the run was down is known before anything of it is written" {
  local run=("${follow[@]}" --state s -o passed log)
  seq 1 1000 >log
  start "${run[@]}"
  eventually has passed 1000
  stop
  seq 1001 1100 >>log
  mv log log.1
  seq 1101 1200 >log
  # Killed long before the state would be saved by itself.
  start "${run[@]}"
  eventually has passed 1200
  kill -KILL "$pid"
  wait "$pid" || true
  seq 1201 1300 >>log
  mv log log.2
  seq 1301 1400 >log
  start "${run[@]}"
  eventually has passed 1400
  stop
  seq 1400 | cmp - passed
  run ! told 'rotated more than once'
  # An empty one, too: it may be written to while nothing follows it.
  mv log log.3
  : >log
  start "${run[@]}"
  eventually knows log
  kill -KILL "$pid"
  wait "$pid" || true
  seq 1401 1500 >>log
  mv log log.4
  seq 1501 1600 >log
  start "${run[@]}"
  eventually has passed 1600
  stop
  seq 1600 | cmp - passed
  run ! told 'rotated more than once'
}

# knows FILE: the state, as it is now.
knows() { [[ s -nt $1 ]]; }

# ended_or_has COUNT: the run is dead, or has written so much.
ended_or_has() { ! kill -0 "$pid" 2>/dev/null || has passed "$1"; }

# rotate_grown HOW: what was not read is rotated away.
rotate_grown() {
  seq 1001 89000 >>log
  if [[ $1 == moved ]]; then mv log log.1; else cp log log.1; fi
  seq 89001 89100 >log
}

@test "state: killed at any call while the rest of a rotated file is read, it goes on" {
  : "${SLUICE_SHIM:?set it to the library that ends a process at a call, see syscall_shim.cpp}"
  local run=("${follow[@]}" --state "$PWD/s" --checkpoint-every 1000 -o "$PWD/passed" log)
  local how call step alive
  step=$(count 24 1)
  for how in moved copied; do
    for ((call = 1, alive = 0; !alive; call += step)); do
      rm -f log* s s.* passed*
      seq 1 1000 >log
      start "${run[@]}"
      eventually has passed 1000
      stop
      rotate_grown "$how"
      LD_PRELOAD=$SLUICE_SHIM SLUICE_SHIM_DIRECTORY=$PWD SLUICE_SHIM_EXIT_AT=$call start "${run[@]}"
      eventually ended_or_has 89100
      if kill -0 "$pid" 2>/dev/null; then alive=1; fi
      kill -KILL "$pid" 2>/dev/null || true
      wait "$pid" || true
      # One more: what was written before may have been complete.
      echo 89101 >>log
      start "${run[@]}"
      eventually ended_or_has 89101
      stop || fail "$how: killed at call $call"
      seq 89101 | cmp - passed || fail "$how: killed at call $call"
    done
    echo "$how: $call calls"
    [[ $call -gt 30 ]]
  done
}

@test "state: killed while it reads what only a copy has, it goes on" {
  local run=("${follow[@]}" --state s --checkpoint-every 10k -o passed log)
  seq 1 1000 >log
  start "${run[@]}"
  # Before the first checkpoint, it writes when nothing is left to read.
  eventually has passed 1000
  kill -STOP "$pid"
  seq 1001 500000 >>log
  cp log log.1
  seq 500001 500100 >log
  kill -CONT "$pid"
  eventually has_more passed 20000
  kill -KILL "$pid"
  wait "$pid" || true
  start "${run[@]}"
  eventually ended_or_has 500100
  stop
  seq 500100 | cmp - <(sort -n passed)
}

# has_more FILE COUNT: than so many lines.
has_more() { [[ $(wc -l <"$1") -gt $2 ]]; }

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

@test "state: a log of which only the header was read, rotated while the run is down" {
  local signal run=("${follow[@]}" --csv --key id --state s -o passed log)
  for signal in INT KILL; do
    rm -f log* s s.* passed
    printf 'id,m\n' >log
    start "${run[@]}"
    eventually test -e s
    eventually read_all log
    kill "-$signal" "$pid"
    wait "$pid" || true
    printf '1,a\n2,b\n' >>log
    mv log log.1
    printf 'id,m\n3,c\n' >log
    start "${run[@]}"
    eventually has passed 4
    stop
    holds passed 'id,m\n1,a\n2,b\n3,c\n'
  done
  # Rotated twice: what is not read is told.
  printf '4,d\n' >>log
  mv log log.3
  printf 'id,m\n5,e\n' >log.2
  printf 'id,m\n6,f\n' >log
  start "${run[@]}"
  eventually has passed 6
  stop
  told "'log.2' may hold records that were not read"
  holds passed 'id,m\n1,a\n2,b\n3,c\n4,d\n6,f\n'
}

# read_all FILE: the run has come to its end.
read_all() {
  local number
  number=$(find "/proc/$pid/fd" -lname "$PWD/$1" -printf %f)
  [[ -n $number ]] && grep -q "^pos:[^0-9]*$(stat -c %s "$1")$" "/proc/$pid/fdinfo/$number"
}

@test "state: logs that begin alike go on after a stop" {
  local how run=("${follow[@]}" --state s -o passed a b)
  for how in running rotated emptied gone; do
    rm -f a* b* s s.* passed
    echo header >a
    printf 'header\nb1\n' >b
    start "${run[@]}"
    eventually has passed 2
    if [[ $how == running ]]; then
      mv a a.1
      printf 'header\na2\n' >a
      eventually has passed 3
    fi
    stop
    case $how in
    running) echo a1 >>a ;;
    rotated | emptied | gone)
      echo a1 >>a
      mv a a.1
      ;;&
    rotated) printf 'header\na2\n' >a ;;
    emptied) echo a2 >a ;;
    esac
    echo b2 >>b
    start "${run[@]}"
    if [[ $how == gone ]]; then
      eventually has passed 4
      echo a2 >a
    fi
    eventually has passed 5
    stop
    printf '%s\n' a1 a2 b1 b2 header | cmp - <(sort passed) || fail "$how"
  done
  # One that is nowhere is told.
  rm a
  start "${run[@]}"
  eventually told "'a' was read up to byte"
  told 'If it was moved elsewhere, stop this run and give the file as an input, before the others'
  stop
}

@test "state: a copy of the disk goes on, by contents and names" {
  local run=("${follow[@]}" --state s -o passed a b)
  mkdir old new
  cd old
  echo header >a
  printf 'header\nb1\n' >b
  start "${run[@]}"
  eventually has passed 2
  stop
  # Made in this order, b may have the number that a had.
  cp -p b a s passed ../new
  cd ../new
  echo a1 >>a
  echo b2 >>b
  start "${run[@]}"
  eventually has passed 4
  stop
  holds passed 'header\nb1\na1\nb2\n'
  run ! told warning
}

@test "state: a file that got the inode of a log of which nothing was read is not that log" {
  local run=("${follow[@]}" --state s -o passed a.log)
  mkdir l && cd l
  : >a.log
  start "${run[@]}"
  eventually test -s s
  stop
  # The very inode, as a link.
  ln a.log unrelated
  mv a.log a.log.gone && rm a.log.gone
  echo secret >>unrelated
  echo 9 >a.log
  start "${run[@]}"
  eventually has passed 1
  stop
  holds passed '9\n'
}

@test "copytruncate: a log that begins with what was read of it before" {
  local how state
  for state in '' '--state s'; do
    for how in header half equal longer; do
      rm -f log* s s.* passed
      printf 'id,m\n' >log
      # shellcheck disable=SC2086  # a flag and its value
      start "${follow[@]}" --csv --key id $state -o passed log
      eventually read_all log
      if [[ $how == half ]]; then
        printf '0,' >>log
        eventually read_all log
      fi
      # Nothing looks at the files while these are done.
      eventually looked
      kill -STOP "$pid"
      if [[ $how == half ]]; then printf 'm\n' >>log; else printf '0,m\n' >>log; fi
      cp log log.1
      printf 'id,m\n' >log
      if [[ $how == equal ]]; then printf '1,n\n' >>log; fi
      if [[ $how == longer ]]; then printf '1,n\n2,o\n' >>log; fi
      kill -CONT "$pid"
      eventually has_line passed 0,m || fail "$how $state"
      told "'log.1' is a copy of it, whose rest is read"
      printf '9,z\n' >>log
      eventually has_line passed 9,z || fail "$how $state"
      stop
      case $how in
      header | half) holds passed 'id,m\n0,m\n9,z\n' ;;
      equal) holds passed 'id,m\n0,m\n1,n\n9,z\n' ;;
      longer) holds passed 'id,m\n0,m\n1,n\n2,o\n9,z\n' ;;
      esac
    done
  done
}

# has_line FILE LINE
has_line() { [[ -e $1 ]] && grep -qxF -- "$2" "$1"; }

@test "copytruncate: a copy of a log that was not truncated is not read, nor are old logs" {
  printf 'id,m\n7,x\n' >log.1
  touch -d '1 hour ago' log.1
  printf 'id,m\n' >log
  start "${follow[@]}" --csv --key id --state s -o passed log
  eventually read_all log
  printf '1,a\n' >>log
  cp log log.backup
  eventually has passed 2
  stop
  cp log log.backup2
  printf '2,b\n' >>log
  start "${follow[@]}" --csv --key id --state s -o passed log
  eventually has passed 3
  stop
  holds passed 'id,m\n1,a\n2,b\n'
  run ! told warning
}

@test "state: copied and truncated while the run is down, and begins with what was read of it before" {
  local run=("${follow[@]}" --csv --key id --state s -o passed log)
  printf 'id,m\n' >log
  start "${run[@]}"
  eventually test -e s
  eventually read_all log
  stop
  printf '0,m\n' >>log
  cp log log.1
  printf 'id,m\n1,n\n' >log
  start "${run[@]}"
  eventually has passed 3
  stop
  holds passed 'id,m\n0,m\n1,n\n'
}

@test "state: rotated and compressed while the run is down, and begins as its successor: it is told" {
  local run=("${follow[@]}" --csv --key id --state s -o passed log)
  printf 'id,m\n' >log
  start "${run[@]}"
  eventually test -e s
  eventually read_all log
  stop
  printf '0,m\n' >>log
  gzip <log >log.1.gz
  printf 'id,m\n1,n\n' >new
  mv new log
  start "${run[@]}"
  eventually has passed 2
  told "'log.1.gz' may hold records that were not read"
  stop
}

@test "a file is followed once" {
  echo 1 >log
  ln -s log link
  ln log hard
  refused 2 dedup --follow log log
  says "'log' and 'log' are the same file"
  refused 2 dedup --follow log ./log
  says "'log' and './log' are the same file"
  refused 2 dedup --follow log link
  says "'log' and 'link' are the same file"
  refused 2 dedup --follow hard log
  says "'hard' and 'log' are the same file"
  refused 2 dedup --follow later later
  says "'later' and 'later' are the same file"
  start "${follow[@]}" log later
  eventually has out 1
  ln -s log later
  ends_with 1
  told "'later' is now the file that is followed as 'log'"
}
