#!/usr/bin/env bats
# Interrupts and readers that leave.
load helper

# interrupted SIGNAL CODE: a run that waits on an idle pipe drains, saves and reports.
interrupted() {
  mkfifo feed
  start dedup --stats json --expect 1k --state s feed
  exec 7>feed
  printf 'a\nb\na\nunfinished' >&7
  eventually holds out 'a\nb\n' >/dev/null
  kill "-$1" "$pid"
  ends_with "$2"
  exec 7>&-
  holds out 'a\nb\n'
  [ "$(stat_of '[.records,.distinct,.duplicates,.unfinished_bytes,.interrupted]|join(" ")')" = \
    "3 2 1 10 true" ]
  grep -qE "^sluice dedup: stopped by SIG$1; no record that was read is lost: .* the state is saved, and \
the same command again continues with what comes next" err
  grep -qE "warning: stopped within a record of 'feed': the 10 bytes of it .* send it again" err
  printf 'a\nb\nc\n' | sluice dedup --stats none --state s >again
  holds again 'c\n'
}

@test "SIGINT drains, saves the state, prints the summary, exits 130" {
  interrupted INT 130
}

@test "SIGTERM does the same and exits 143" {
  interrupted TERM 143
}

@test "SIGHUP does the same and exits 129; under nohup it is ignored" {
  interrupted HUP 129
  rm -f feed out s s.*
  mkfifo feed
  nohup "$SLUICE" dedup --stats none --expect 1k --state s feed >out 2>err 3>&- &
  pid=$!
  started+=("$pid")
  exec 7>feed
  echo a >&7
  eventually holds out 'a\n' >/dev/null
  kill -HUP "$pid"
  echo b >&7
  exec 7>&-
  ends_with 0
  holds out 'a\nb\n'
}

@test "SIGINT before a named pipe has a writer" {
  mkfifo feed
  start dedup --stats json --state s --expect 1k feed
  # The lock is taken after the signals are caught.
  eventually test -e s.lock
  kill -INT "$pid"
  ends_with 130
  [ "$(stat_of .records)" = 0 ]
}

@test "SIGUSR1 asks how it is going, and the run goes on" {
  mkfifo feed
  for stats in json text none; do
    rm -f out err
    start dedup --stats $stats --audit 1/1 --filter exact feed
    exec 7>feed
    printf 'a\nb\na\n' >&7
    eventually holds out 'a\nb\n' >/dev/null
    kill -USR1 "$pid"
    case $stats in
      json)
        eventually grep -q . err
        [ "$(stat_of '[.records, .running, .interrupted, .audit.distinct, .audit.duplicates] |
          join(" ")')" = "3 true false 2 1" ]
        ;;
      text)
        eventually grep -q 'the whole process' err
        grep -q '3 records.*, still running' err
        grep -qE '^  audit .*false positives < ' err
        ;;
    esac
    printf 'b\nc\n' >&7
    exec 7>&-
    ends_with 0
    holds out 'a\nb\nc\n'
    case $stats in
      json) [ "$(stat_of '[.records, .running] | join(" ")')" = "5 false" ] ;;
      text) [ "$(grep -c 'the whole process' err)" -eq 2 ] ;;
      none) [ ! -s err ] ;;
    esac
  done
}

@test "while no record comes, ghosts are asked" {
  mkfifo feed
  start dedup --stats json --audit 1/1 --filter exact feed
  exec 7>feed
  echo a >&7
  eventually holds out 'a\n' >/dev/null
  asked() {
    kill -USR1 "$pid"
    sleep 0.1
    [ "$(stat_of '.audit.ghost_probes // 0')" -ge 30000 ]
  }
  eventually asked
  exec 7>&-
  ends_with 0
}

@test "on a terminal the progress line has the audit's numbers" {
  command -v script >/dev/null || skip "script is not installed"
  lines_of 200k >input
  script -qec "'$SLUICE' dedup --audit 1/64 --filter bloom,keys=20000,fpr=0.02 input >out" /dev/null \
    </dev/null >screen
  grep -qE 'records .* false\+ [<0-9].* false- [<0-9].* ghosts ' screen
  # It is cut where the terminal ends: one that is broken could not be written over.
  script -qec "stty cols 40; '$SLUICE' dedup --audit 1/64 input >out" /dev/null </dev/null |
    tr '\r' '\n' | sed 's/\x1b.*//' | grep '[0-9] records ' >lines
  [ -s lines ]
  [ "$(awk 'length > 39' lines | wc -l)" -eq 0 ]
}

@test "SIGINT in the middle of a large file keeps output and state in step" {
  lines_of 400k >input
  mkfifo drain
  "$SLUICE" dedup --stats json --expect 1M --seed 1 --state s input >drain 2>err 3>&- &
  pid=$!
  started+=("$pid")
  # The pipe is full and the run waits for its reader when the signal comes.
  exec 8<drain
  head -c 1000 <&8 >out
  kill -INT "$pid"
  cat <&8 >>out
  exec 8<&-
  ends_with 130
  [ "$(stat_of .interrupted)" = true ]
  [ "$(stat_of .bytes_out)" = "$(stat -c %s out)" ]
  [ "$(stat_of .distinct)" = "$(wc -l <out)" ]
  [ "$(stat_of .records)" -lt 400000 ]
  sluice dedup --stats none --state s input >>out
  awk '!seen[$0]++' input | cmp - out
}

@test "a stop says that nothing is lost and how to continue, which is true" {
  lines_of 400k >input
  awk '!seen[$0]++' input >once
  # The run waits for the reader of its duplicates when the signal comes.
  stopped() {
    rm -f s s.* drain out err
    mkfifo drain
    "$@" 3>&- &
    pid=$!
    started+=("$pid")
    exec 8<drain
    head -c 1000 <&8 >/dev/null
    kill -TERM "$pid"
    cat <&8 >/dev/null
    exec 8<&-
    ends_with 143
  }
  run=("$SLUICE" dedup --stats json --expect 1M --seed 1 --state s --duplicates drain input)
  to_file() { exec "${run[@]}" -o out 2>err; }
  stopped to_file
  grep -qx 'sluice dedup: stopped by SIGTERM; nothing that was read is lost: the state is saved, and the same command again continues from here' err
  run ! grep -q -e warning -e 'within a record' err
  tail -n 1 err | jq -e .interrupted
  cat drain >/dev/null &
  "${run[@]}" -o out 2>/dev/null
  cmp once out

  appended() { exec "${run[@]}" >>out 2>err; }
  stopped appended
  grep -q 'the same command again continues from here$' err
  # The shell empties the file of > before the run can continue it.
  replaced() { exec "${run[@]}" >out 2>err; }
  stopped replaced
  grep -qF 'continues from here, if you write >> instead of > (which would empty the output)' err
  cat drain >/dev/null &
  "${run[@]}" >>out 2>/dev/null
  cmp once out

  quietly() { exec "${run[@]/json/none}" -o out 2>err; }
  stopped quietly
  [ ! -s err ]
}

@test "a second SIGINT ends the run at once" {
  mkfifo drain
  lines_of 400k >input
  "$SLUICE" dedup "${quiet[@]}" input >drain 2>err 3>&- &
  pid=$!
  started+=("$pid")
  exec 8<drain
  head -c 1000 <&8 >/dev/null
  gone() { kill -INT "$pid" 2>/dev/null; ! kill -0 "$pid" 2>/dev/null; }
  eventually gone
  exec 8<&-
  ends_with 130
}

@test "a reader that leaves ends the run quietly with 0, and its keys are not saved" {
  lines_of 400k >input
  run -0 --separate-stderr bash -c 'set -o pipefail
    "$SLUICE" dedup -n 1M --state s input | head -n 1'
  [ "${#lines[@]}" -eq 1 ]
  [[ $stderr != *error* ]]
  [ "$(sluice inspect --json s | jq '.keys, .unfinished.records' | xargs)" = "0 0" ]
  # Also where the reader's shell leaves SIGPIPE at its default.
  run -0 --separate-stderr bash -c 'trap - PIPE
    "$SLUICE" dedup --stats none -n 1M input | head -n 1; exit "${PIPESTATUS[0]}"'
  [ -z "$stderr" ]
}
