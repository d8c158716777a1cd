#!/usr/bin/env bats
# Stop or kill a run at any moment: the same command again finishes it, and its outputs are byte for
# byte those of a run that was left alone. docs/resuming.md has the rules, power.bats cuts the power.
load helper
load resume

# After each kill the same command is run again; at last it is left alone.
# killed_until_done KILLS ARG...
killed_until_done() {
  local kills=$1 code i
  shift
  for ((i = 0; ; ++i)); do
    "$SLUICE" "$@" >>piped 2>err 3>&- &
    pid=$!
    started+=("$pid")
    if ((i < kills)); then
      sleep "$(random_time "$run_us")"
      kill -KILL "$pid" 2>/dev/null || true
    fi
    code=0
    wait "$pid" 2>/dev/null || code=$?
    if grep -q 'continues the unfinished run' err; then continued=$((continued + 1)); fi
    case $code in
      0) return ;;
      137) killed=$((killed + 1)) ;;
      *) fail "ended with $code: $(cat err)" ;;
    esac
  done
}

@test "an input that was changed in its place is read again, and nothing of an output is lost" {
  for i in {10001..30000}; do echo "user$i,active"; done >listed
  sluice dedup --stats none --filter exact --state seen listed -o changes
  sluice dedup --stats none --filter exact --state seen listed -o changes
  [ "$(wc -l <changes)" -eq 20000 ]
  # The same length, and far from the end.
  sed -i 's/^user10005,active$/user10005,paused/' listed
  sluice dedup --stats none --filter exact --state seen listed -o changes
  [ "$(tail -n 1 changes)" = user10005,paused ]
  # Also if another run has saved the state since.
  sed -i 's/^user10006,active$/user10006,paused/' listed
  sluice dedup --stats none --filter exact --state seen </dev/null
  sluice dedup --stats none --filter exact --state seen listed -o changes
  [ "$(tail -n 1 changes)" = user10006,paused ]
  # Stopped before the first checkpoint, and then rotated.
  (seq -f '{"id":%g}' 1 5000 && echo BAD) >log
  run -1 sluice dedup --stats none --filter exact --json --key /id --strict --state s log -o out
  [ "$(wc -l <out)" -eq 5000 ]
  echo '{"id":777777}' >log
  sluice dedup --stats none --filter exact --json --key /id --strict --state s log -o out 2>err
  [ "$(wc -l <out.cut)" -eq 5000 ]
  grep -q "out.cut" err
}

@test "kill -9 at random moments, then the same command again: not one byte differs" {
  seeded
  killed=0 continued=0
  wanted=$(count 6 200)
  for ((round = 0; killed < wanted && round < 20; ++round)); do
    for job in "${jobs[@]}"; do
      if ((killed >= wanted || RANDOM % 18 >= $(count 6 18))); then continue; fi
      # shellcheck disable=SC2086
      set_job $job "$(count 20000 60000)"
      left_alone
      killed_until_done "$(count 2 5)" "${command[@]}"
      as_left_alone || fail "${command[*]}"
    done
  done
  echo "# $killed kills, $continued runs continued" >&3
  [ "$killed" -ge "$wanted" ]
  [ "$continued" -gt 0 ]
}

# unfinished ARG...: `sluice dedup ARG...` on a stream of 30,000 lines, `input`, killed by its
# limit on the size of files: some are delivered and remembered, some delivered only.
unfinished() {
  lines_of 30000 >input
  awk '!seen[$0]++' input >want
  run -1 bash -c 'ulimit -f 500; exec "$SLUICE" dedup --stats none --filter exact --checkpoint-every 1 "$@"' \
    - "$@"
  [ "$(sluice inspect --json s | jq .unfinished.records)" -gt 0 ]
}

again=(dedup --stats none --filter exact --checkpoint-every 1 --state s)

@test "the same command continues, says so, and shows it in the statistics" {
  unfinished --state s -o out input
  offset=$(sluice inspect --json s | jq '.unfinished.inputs[0].offset')
  run -0 --separate-stderr sluice dedup --filter exact --state s -o out input --stats json
  [[ ${stderr_lines[0]} == *"continues the unfinished run"*"'input' from byte"*"%)" ]]
  echo "$stderr" >err
  [ "$(stat_of '.continued | [.input, .offset, .size] | join(" ")')" = \
    "input $offset $(stat -c %s input)" ]
  cmp out want
  [ "$(sluice inspect --json s | jq '.unfinished, .outputs[0].bytes' | xargs)" = "null $(stat -c %s out)" ]
  [ ! -e out.cut ]
}

@test "other inputs, flags or outputs are refused with the remedy, and nothing changes" {
  unfinished --state s -o out --duplicates twice input
  cp out kept
  sha256sum s s.previous >sums
  echo other >other
  refused 2 "${again[@]}" -o out --duplicates twice other
  says "unfinished run" "'input'" --abandon
  refused 2 "${again[@]}" -o out --duplicates twice --invert input
  says "'--invert'" "the same flags"
  refused 2 "${again[@]}" -o out input
  says --duplicates twice
  refused 2 "${again[@]}" -o elsewhere --duplicates twice input
  says elsewhere "0 bytes"
  [ ! -e elsewhere ]
  refused 2 "${again[@]}" -o /dev/null --duplicates twice input
  says "not a file"
  refused 2 merge s s -o merged
  says unfinished --abandon
  cmp out kept
  sha256sum --quiet -c sums
  sluice "${again[@]}" -o out --duplicates twice input
  cmp out want
}

@test "an input that was rotated or edited is refused, one that grew is read on" {
  unfinished --state s -o out input
  cp input whole
  lines_of 30000 7 >input
  refused 2 "${again[@]}" -o out input
  says "'input'" "rotated or edited" --abandon
  head -c 1000 whole >input
  refused 2 "${again[@]}" -o out input
  says "has only 1,000 bytes"
  { cat whole && echo new; } >input
  sluice "${again[@]}" -o out input
  { cat want && echo new; } | cmp - out
}

@test "an output that is gone, shorter or another's is refused while the run is unfinished" {
  unfinished --state s -o out input
  mv out away
  refused 2 "${again[@]}" -o out input
  says "has 0 bytes" --abandon
  [ ! -e out ]
  head -c 5000 away >out
  refused 2 "${again[@]}" -o out input
  says "has 5,000 bytes, fewer than"
  tr a-f A-F <away >out
  refused 2 "${again[@]}" -o out input
  says "other contents"
  # Its name does not matter.
  mv away new-name
  rm out
  sluice "${again[@]}" -o new-name input
  cmp new-name want
}

@test "--abandon gives the run up and keeps its keys" {
  unfinished --state s -o out input
  kept=$(sluice inspect --json s | jq '.outputs[0].bytes')
  cp out torn
  echo other >other
  run -0 --separate-stderr sluice "${again[@]}" --abandon -o out other
  # What it cannot write again is kept.
  says "cut back" out.cut
  { head -c "$kept" torn && echo other; } | cmp - out
  tail -c +$((kept + 1)) torn | cmp - out.cut
  sluice "${again[@]}" input >rest
  { head -c "$kept" torn && cat rest; } | cmp - want
  refused 2 dedup --abandon input
  says --state
}

@test "--abandon when the old output was moved away says what may come again" {
  unfinished --state s -o out input
  cut=$(sluice inspect --json s | jq '.outputs[0].bytes')
  mv s kept
  mv out away
  for how in '-o out' '-o other' '>out' '>>out' '>other'; do
    rm -f out other
    cp kept s
    run -0 --separate-stderr bash -c '"$SLUICE" dedup --stats none --filter exact --state s --abandon \
      input '"$how"
    stderr=${stderr//,/}
    says warning "$PWD/out' of the run that is given up" "after byte $cut is not in the state"
    [ "${#stderr_lines[@]}" -eq 1 ]
  done
  # By its contents it is known under any name.
  cp kept s
  cp away torn
  run -0 --separate-stderr sluice "${again[@]}" --abandon -o away input
  says "'away' was cut back"
  cmp away want
  tail -c +$((cut + 1)) torn | cmp - away.cut
}

@test "standard output: >> continues, > is refused when it has emptied the file" {
  echo before >out
  lines_of 30000 >input
  awk '!seen[$0]++' input >want
  run -1 bash -c 'ulimit -f 500; exec "$SLUICE" dedup --stats none --filter exact --checkpoint-every 1 \
    --state s input >>out'
  cp out kept
  run -2 --separate-stderr bash -c '"$SLUICE" dedup --stats none --filter exact --state s input >out'
  says "0 bytes" ">>" --output
  cp kept out
  run -2 bash -c '"$SLUICE" dedup --stats none --filter exact --state s input | cat; exit "${PIPESTATUS[0]}"'
  sluice "${again[@]}" input >>out
  { echo before && cat want; } | cmp - out
}

@test "standard output that was emptied after a finished run is refused if nothing is new, or said" {
  again=(dedup --stats none --filter exact --state s)
  seq 1 1000 >input
  sluice "${again[@]}" input >out
  cp s kept
  run -2 --separate-stderr bash -c '"$SLUICE" "$@" >out' - "${again[@]}" input
  [ "${#stderr_lines[@]}" -eq 1 ]
  says "standard output has 0 bytes, fewer than the 3,893 bytes" "nothing new" "--output FILE or \`>>\`" "delete the state"
  cmp s kept
  # Standard input is another input by its name only.
  run -2 --separate-stderr bash -c '"$SLUICE" "$@" <input >out' - "${again[@]}"
  # A job whose inputs grow and whose output is read each time goes on, but is warned.
  seq 1001 1003 >>input
  sluice "${again[@]}" input >out 2>err
  [ "$(paste -sd ' ' out)" = "1001 1002 1003" ]
  grep -q "standard output has 0 bytes, fewer than the 3,893 bytes.*not written again.*>>" err
  # Inputs that were not read before ask for nothing of what was there.
  seq 2001 2003 >other
  sluice "${again[@]}" other >out 2>err
  [ "$(wc -l <out)" -eq 3 ]
  [ ! -s err ]
  # What a pipe brings is known at the end only.
  seq 2001 2003 | sluice "${again[@]}" >out 2>err
  [ ! -s out ]
  grep -q "no record of this run was written" err
  # Nothing was written, so nothing is missing.
  seq 2001 2003 | sluice "${again[@]}" >out 2>err
  [ ! -s err ]
}

@test "standard output that was emptied: >> is not refused, and neither are other flags or --forget" {
  again=(dedup --stats none --filter exact --state s)
  seq 1 10 >input
  sluice "${again[@]}" input >>out
  # A daily job that moves its output away does nothing wrong: it is a note, without advice.
  cp s kept
  mv out out.1
  sluice "${again[@]}" input >>out 2>err
  [ ! -s err ]
  cp kept s
  sluice dedup --filter exact --state s input >>out 2>err
  grep -q "fewer than the 21 bytes.* was moved or emptied since" err
  run ! grep -qE 'warning|--output' err
  cp kept s
  seq 1 10 | sluice dedup --filter exact --state s >>out 2>err
  grep -q "fewer than the 21 bytes.* was moved or emptied since" err
  run ! grep -qE 'warning|--output' err
  rm s s.previous
  sluice "${again[@]}" input >out
  sluice "${again[@]}" --invert input >out
  [ "$(wc -l <out)" -eq 10 ]
  seq 1 2 >back
  sluice "${again[@]}" --invert --forget back input >out
  [ "$(wc -l <out)" -eq 8 ]
}

@test "FILE.cut is on the disk, with its name, before the output is shortened" {
  : "${SLUICE_SHIM:?set it to the library that logs calls, see syscall_shim.cpp}"
  seq 1 1000 | sluice dedup --stats none --filter exact --state s -o out
  for before in none kept; do
    if [[ $before == none ]]; then rm -f out.cut; fi
    echo torn >>out
    rm -f calls
    seq 1 1000 | LD_PRELOAD=$SLUICE_SHIM SLUICE_SHIM_DIRECTORY=$PWD SLUICE_SHIM_LOG=$PWD/calls \
      "$SLUICE" dedup --stats none --filter exact --state "$PWD/s" -o "$PWD/out"
    holds out "$(seq 1 1000)\n"
    awk -v folder="$PWD" '
      $1 == "write" && $2 == folder "/out.cut" { state = "written" }
      $1 == "fsync" && $2 == folder "/out.cut" && state == "written" { state = "contents" }
      $1 == "fsync" && ($2 == folder || $2 == folder "/") && state == "contents" { state = "durable" }
      $1 == "truncate" && $2 == folder "/out" { found = state; exit }
      END { print found }' calls | grep -qx durable || fail "$(cat calls)"
  done
  holds out.cut 'torn\ntorn\n'
}

@test "standard output: what a run wrote before its first checkpoint is cut off" {
  echo before >out
  lines_of 30000 >input
  run -1 bash -c 'ulimit -f 500; exec "$SLUICE" dedup --stats none --filter exact --state s input >>out'
  [ "$(stat -c %s out)" -gt 100000 ]
  sluice "${again[@]}" input >>out
  { echo before && awk '!seen[$0]++' input; } | cmp - out
}

@test "standard input from a file continues, also when it did not begin at its front" {
  lines_of 30000 >input
  tail -n +2 input | awk '!seen[$0]++' >want
  run -1 bash -c 'ulimit -f 500; { read -r _; exec "$SLUICE" dedup --stats none --filter exact \
    --checkpoint-every 1 --state s -o out; } <input'
  run -2 --separate-stderr bash -c 'cat input | "$SLUICE" dedup --stats none --filter exact --state s -o out'
  says "standard input" --abandon
  { read -r _ && sluice "${again[@]}" -o out; } <input
  cmp out want
}

@test "a pipe cannot be rewound: the state goes on, and what was cut is kept" {
  lines_of 30000 >input
  awk '!seen[$0]++' input >want
  run -1 bash -c 'ulimit -f 500; cat input | "$SLUICE" dedup --stats none --filter exact --checkpoint-every 1 \
    --state s -o out; exit "${PIPESTATUS[1]}"'
  torn=$(stat -c %s out)
  # Sent again from the beginning, nothing is lost and nothing comes twice.
  run -0 --separate-stderr bash -c 'cat input | "$SLUICE" dedup --filter exact --state s -o out'
  says "continues" "from what it brings now"
  cmp out want
  if [[ -e out.cut ]]; then [ "$(stat -c %s out.cut)" -lt "$torn" ]; fi
}

@test "an output that the shell has emptied: what a pipe brings is not read, and must be sent again" {
  lines_of 30000 >input
  run -1 bash -c 'ulimit -f 500; cat input | "$SLUICE" dedup --stats none --filter exact --checkpoint-every 1 \
    --state s >out; exit "${PIPESTATUS[1]}"'
  run -2 --separate-stderr bash -c 'cat input | "$SLUICE" dedup --filter exact --state s >out'
  says "empties the file" "sent again"
}

@test "a finished run: -o is continued, begun anew where it was moved away, and refused if it is another's" {
  seq 1 5 >one
  seq 4 8 >two
  sluice "${again[@]}" one -o out
  sluice "${again[@]}" two -o out
  seq 1 8 | cmp - out
  mv out yesterday
  seq 7 9 >three
  sluice "${again[@]}" three -o out
  holds out '9\n'
  echo 10 >four
  echo 'a letter of some length' >out
  refused 2 "${again[@]}" four -o out
  says "other contents"
  holds out 'a letter of some length\n'
  # A file that the state does not know is replaced, as ever; each one that it wrote is continued.
  echo old >new
  sluice "${again[@]}" four -o new
  holds new '10\n'
  printf '9\n' >out
  echo 11 >five
  sluice "${again[@]}" five -o out
  holds out '9\n11\n'
  echo 12 >six
  sluice "${again[@]}" six -o new
  holds new '10\n12\n'
}

@test "a finished run: what others wrote after it is cut off, and kept" {
  seq 1 5 >one
  sluice "${again[@]}" one -o out
  echo torn >>out
  run -0 --separate-stderr sluice "${again[@]}" <(seq 4 6) -o out
  says "'out' was cut back" "5 bytes" out.cut
  seq 1 6 | cmp - out
  holds out.cut 'torn\n'
}

@test "what is cut off is kept as a whole or not at all" {
  seq 1 5 >input
  sluice "${again[@]}" input -o out
  head -c 300000 /dev/zero >>out
  echo 6 >>input
  limited() { bash -c 'ulimit -f 100; exec "$SLUICE" "$@"' - "${again[@]}" input -o out; }
  run -1 --separate-stderr limited
  says "cannot keep the end of 'out' in '$PWD/out.cut'" "File too large"
  [ ! -e out.cut ]
  echo before >out.cut
  run -1 limited
  holds out.cut 'before\n'
  sluice "${again[@]}" input -o out 2>err
  { echo before && head -c 300000 /dev/zero; } | cmp - out.cut
  seq 1 6 | cmp - out
  # Of two outputs, the first has room, and the second has not.
  sluice "${again[@]}" input -o first --duplicates second
  echo short >>first
  head -c 300000 /dev/zero >>second
  echo 7 >>input
  run -1 bash -c 'ulimit -f 100; exec "$SLUICE" "$@"' - "${again[@]}" input -o first --duplicates second
  sluice "${again[@]}" input -o first --duplicates second 2>err
  holds first.cut 'short\n'
  holds first '7\n'
  head -c 300000 /dev/zero | cmp - second.cut
}

@test "a run that is refused before it has judged a record leaves no state, and changes none" {
  printf 'a 2026-01-01\n' >dates
  refused 2 dedup --stats none -k 1 --event-time 2 --window 24h --state s -o out dates
  says "--window day"
  [ "$(ls --ignore='separate-stderr*')" = dates ]
  printf 'k,t\na,2026-01-01T10:00:00Z\n' >log
  table=(dedup --stats none --csv -k k --event-time t --window 24h --state s)
  sluice "${table[@]}" log -o out
  cp s before
  printf 'k,t\n' >empty
  printf 'k,t\nb,2026-01-02\n' >other
  for files in 'other -o out' 'other -o new' 'empty other -o out' 'log other -o out'; do
    # shellcheck disable=SC2086  # several words
    refused 2 "${table[@]}" $files
    says "other: record 1"
    cmp s before
  done
  printf 'b,2026-01-02\n' >>log
  mv out moved
  refused 2 "${table[@]}" log -o out
  says "log: record 2"
  cmp s before
  [ "$(ls --ignore='separate-stderr*')" = "$(printf '%s\n' before dates empty log moved other s)" ]
  sluice "${table[@]}" empty -o out
  holds out 'k,t\n'
}

@test "a table that is read on: the header comes with the first record, which has its number" {
  printf 'k,v\n1,1\n2,2\n' >log
  table=(dedup --stats none --filter exact --csv --max-record 4KiB --state s log -o out)
  sluice "${table[@]}"
  mv out yesterday
  { head -c 5000 /dev/zero | tr '\0' z && echo; } >>log
  refused 1 "${table[@]}"
  says "log: record 3 is longer than 4 KiB"
  [ ! -e out ]
  sed -i 's/^zz*$/3,3/' log
  sluice "${table[@]}"
  holds out 'k,v\n3,3\n'
}

@test "the header is not written again, nor two records on one line" {
  printf 'id,x\n1,a\n2,b' >one
  printf 'id,x\n2,b\n3,c\n' >two
  table=(dedup --stats none --csv --key id --filter exact --state s)
  sluice "${table[@]}" one -o out --duplicates dup
  cp one same
  sluice "${table[@]}" same -o out --duplicates dup
  holds out 'id,x\n1,a\n2,b'
  sluice "${table[@]}" two -o out --duplicates dup
  holds out 'id,x\n1,a\n2,b\n3,c\n'
  holds dup 'id,x\n1,a\n2,b\n2,b\n'
  printf 'x,id\nd,4\n' >other
  refused 2 "${table[@]}" other -o out
  says "'id,x'" "'x,id'" out
  sluice dedup --stats none --csv --key id --filter exact --state t one >>by-shell
  sluice dedup --stats none --csv --key id --filter exact --state t two >>by-shell
  cmp by-shell out
}

@test "a table from a pipe, or appended by the shell: no row is taken for a header" {
  { echo id,n && seq 1 30 | sed 's/$/,x/'; } >whole
  split -l 10 whole part_
  table=(dedup --stats none --csv --key 1 --filter exact)
  # tried FLAGS ARG...: how the parts are given, one after the other. The second one has no header.
  tried() {
    rm -f s s.* out* dup*
    "$@" part_aa
    cp s before
    run -2 --separate-stderr "$@" part_ab
    says "'id,n'" "'10,x'" --no-header
    cmp s before
    # With the header it can be given.
    { echo id,n && cat part_ab; } >second
    "$@" second
  }
  piped() { cat "${!#}" | sluice "${table[@]}" "${@:1:$#-1}"; }
  appended() { sluice "${table[@]}" --state s "$1" >>out; }
  # shellcheck disable=SC2002  # a pipe is meant
  piped_and_appended() { cat "$1" | sluice "${table[@]}" --state s >>out; }
  tried piped --state s -o out
  cmp out <(head -n 20 whole)
  tried appended
  cmp out <(head -n 20 whole)
  tried piped_and_appended
  cmp out <(head -n 20 whole)
  tried piped --state s -o out.gz
  cmp <(zcat out.gz) <(head -n 20 whole)
  tried piped --state s -o out --duplicates dup.zst
  tried piped --state s --invert -o out
  holds out 'id,n\n'
  # After a header without rows.
  rm -f s s.* out
  echo id,n | sluice "${table[@]}" --state s >>out
  run -2 piped --state s -o out part_ab
  # TSV, and posteriors, which add a column to the header.
  rm -f s s.* out
  printf 'id\tn\n1\ta\n' | sluice dedup --stats none --tsv --state s -o out
  run -2 --separate-stderr sluice dedup --stats none --tsv --state s -o out < <(printf '2\tb\n3\tc\n')
  says "'2"
  rm -f s s.* out
  posteriors=(--state s --window 100 --filter cohort --posterior -o out)
  printf 'id,n\n1,a\n' | sluice dedup --stats none --csv -k 1 "${posteriors[@]}"
  printf 'id,n\n2,a\n' | sluice dedup --stats none --csv -k 1 "${posteriors[@]}"
  [ "$(grep -c '^id,n,sluice_posterior$' out)" -eq 1 ]
  [ "$(wc -l <out)" -eq 3 ]
  run -2 sluice dedup --stats none --csv -k 1 "${posteriors[@]}" < <(printf 'id,m\n2,a\n')
}

@test "a table from a pipe: other columns on the second day are refused" {
  table=(dedup --stats none --csv --key id --filter exact --state s)
  printf 'id,n\n1,a\n' | sluice "${table[@]}" -o out
  for other in 'n,id\na,1\nb,2\n' 'id,n,m\n2,b,c\n' 'id,name\n2,b\n' 'id,n,m\n'; do
    # shellcheck disable=SC2059  # a text with escapes
    run -2 --separate-stderr sluice "${table[@]}" -o out < <(printf "$other")
    says "has the header 'id,n'" "'${other%%\\*}'"
  done
  holds out 'id,n\n1,a\n'
  # Another file is another table, and a mark or another end of line is no other header.
  printf 'n,id\nb,2\n' | sluice "${table[@]}" -o other
  holds other 'n,id\nb,2\n'
  printf '\xEF\xBB\xBFid,n\r\n3,c\r\n' | sluice "${table[@]}" -o out
  holds out 'id,n\n1,a\n3,c\r\n'
  # A long one is compared whole, and shown in part.
  { printf 'id,' && seq -s, 1 300 && echo 0; } >long
  sluice "${table[@]}" -o wide <long
  sed 's/300$/301/' long >longer
  run -2 --separate-stderr sluice "${table[@]}" -o wide <longer
  [ ${#stderr} -lt 2500 ]
}

@test "the header comes with the first table, after inputs that had none" {
  table=(dedup --csv --key id --filter exact --state s --stats none)
  report() { sluice "${table[@]}" "$@" >>rep; }
  echo '# report' >rep
  report </dev/null
  printf 'id,n\n1,a\n' | report
  printf 'id,n\n2,b\n' | report
  holds rep '# report\nid,n\n1,a\n2,b\n'
  printf 'n,id\n9,9\n' >other
  run -2 --separate-stderr report other
  # The same with a file to forget, and from a file.
  rm -f s s.*
  echo '# report' >rep
  printf 'id,n\n1,a\n' >in
  report --forget in </dev/null
  report in
  report --forget in </dev/null
  printf 'id,n\n1,b\n' | report
  holds rep '# report\nid,n\n1,a\n1,b\n'
  # A file that was there is continued by the shell only.
  rm -f s s.*
  printf '' | sluice "${table[@]}" -o rep
  printf 'id,n\n1,a\n' | sluice "${table[@]}" -o rep
  holds rep 'id,n\n1,a\n'
}

@test "--forget is done once when the run continues" {
  lines_of 30000 >input
  once=(dedup --stats none --seed 1)
  sluice "${once[@]}" --state s input -o first
  head -n 1000 input >back
  cp s begin
  sluice "${once[@]}" --state begin --forget back input >want
  run -1 bash -c 'ulimit -f 500; exec "$SLUICE" "$@"' - "${once[@]}" --checkpoint-every 1 --state s \
    --forget back input -o out --duplicates twice
  [ "$(sluice inspect --json s | jq '.unfinished.records > 1000')" = true ]
  sluice "${once[@]}" --state s --forget back input -o out --duplicates twice
  cmp out want
}

@test "a run that is killed while it ends has finished: the same command does nothing more" {
  seq 1 5000 >input
  command=(dedup --stats json --window 100 --filter exact --state s -o out input)
  # It saves its state, and then waits: nobody reads its statistics.
  mkfifo said
  exec 8<>said
  head -c 65536 /dev/zero >&8
  "$SLUICE" "${command[@]}" 2>said 3>&- &
  pid=$!
  started+=("$pid")
  saved() { [[ -e s && $(sluice inspect --json s | jq '.unfinished == null and .keys > 0') == true ]]; }
  eventually saved
  kill -KILL "$pid"
  wait "$pid" || true
  exec 8<&-
  run -0 --separate-stderr sluice "${command[@]}"
  says "nothing left to do" --abandon
  cmp out input
  # With other flags or outputs it is another command, and reads the inputs itself.
  sluice "${command[@]}" --duplicates twice 2>err
  cat input input | cmp - out
  # An output that was moved away does not make the inputs new.
  sluice "${command[@]}" 2>err
  mv out before
  echo 5001 >>input
  sluice "${command[@]}" 2>err
  holds out '5001\n'
  mv out before
  run -0 --separate-stderr sluice "${command[@]}"
  says "nothing new" --abandon
  [ ! -s out ]
  sluice "${command[@]}" --abandon 2>err
  cmp out input
}

# The window is so short that all is delivered again if it is read again.
short=(dedup --filter exact --window 10 --state s)

@test "a finished run: inputs that grew are read on, others from their beginning, wherever they stand" {
  seq 1 50 >a
  seq 101 150 >b
  sluice "${short[@]}" a b -o out 2>err
  seq 51 60 >>a
  seq 201 250 >c
  run -0 --separate-stderr sluice "${short[@]}" c b a -o out --stats json
  says "reads on" "'a' from byte 141 of 171"
  echo "${stderr_lines[-1]}" >err
  [ "$(stat_of '.records')" = 60 ]
  { seq 1 50 && seq 101 150 && seq 201 250 && seq 51 60; } >want
  cmp out want
  # Not among the inputs for once, and then again.
  echo 61 >>a
  echo 251 >>c
  sluice "${short[@]}" "$PWD/c" -o out 2>err
  sluice "${short[@]}" ./a b -o out 2>err
  printf '251\n61\n' >>want
  cmp out want
  run -0 --separate-stderr sluice "${short[@]}" c a b -o out
  says "nothing left to do"
  # A file with the same name and contents in another folder is another file.
  mkdir folder
  cp a folder
  sluice "${short[@]}" folder/a -o out 2>err
  cat want a | cmp - out
  # Pipes are always read.
  echo 62 >>a
  sluice "${short[@]}" a <(seq 301 302) -o out 2>err
  tail -n 3 out | holds /dev/stdin '62\n301\n302\n'
}

@test "a finished run: a rotated input is read from its beginning, and the renamed one read on" {
  seq 1 50 >log
  sluice "${short[@]}" log -o out 2>err
  echo 51 >>log
  mv log log.1
  seq 1001 1060 >log
  cp s begin
  run -0 --separate-stderr sluice "${short[@]}" log -o out --stats none
  says "'log' is not the file" "from its beginning" "'log.1' is the file"
  { seq 1 50 && seq 1001 1060; } >want
  cmp out want
  sluice "${short[@]}" log.1 log -o out 2>err
  echo 51 >>want
  cmp out want
}

@test "a finished run: a last line without an end that is continued is judged again, with a warning" {
  printf 'id,x\n1,"a\n2"\n3,b' >in
  sluice "${short[@]}" --csv --key id in -o out 2>err
  # Its terminator comes later: nothing is judged again.
  printf '\r\n4,"c\nd' >>in
  run -0 --separate-stderr sluice "${short[@]}" --csv --key id in -o out
  [[ $stderr != *"had no end"* ]]
  # Within quotes, a newline is none.
  printf '\ne",f\n5,g\n' >>in
  run -0 --separate-stderr sluice "${short[@]}" --csv --key id in -o out
  says "had no end"
  holds out 'id,x\n1,"a\n2"\n3,b\n4,"c\nd\n4,"c\nd\ne",f\n5,g\n'
  rm -f s s.* out
  printf 'one\ntw' >in
  sluice "${short[@]}" in -o out 2>err
  printf 'o\nthree\n' >>in
  run -0 --separate-stderr sluice "${short[@]}" in -o out --stats none
  says "'in'" "had no end" "as a whole"
  holds out 'one\ntw\ntwo\nthree\n'
}

@test "kill -9 while inputs grow and come: in the end each record is there once, in order of reading" {
  seeded
  wanted=$(count 4 60)
  killed=0 continued=0
  for ((round = 0; killed < wanted && round < 40; ++round)); do
    rm -f s s.* out in.*
    command=(dedup --filter exact --window 10 --checkpoint-every 500 --threads $((1 + RANDOM % 2)) --state s -o out)
    next=0
    for ((day = 0; day < 4; ++day)); do
      # What is new in any of the inputs, while a run is unfinished or after it.
      for ((part = 0; part <= day; ++part)); do
        seq -f 'record-%.0f' $((next + 1)) $((next + 15000)) >>"in.$part"
        next=$((next + 15000))
      done
      command+=("in.$day")
      run_us=30000
      if ((RANDOM % 2)); then
        "$SLUICE" "${command[@]}" >>piped 2>err 3>&- &
        pid=$!
        started+=("$pid")
        sleep "$(random_time "$run_us")"
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
        seq -f 'record-%.0f' $((next + 1)) $((next + 100)) >>in.0
        next=$((next + 100))
      fi
      killed_until_done 1 "${command[@]}"
    done
    sort out >got
    cat in.* | sort | cmp - got || fail "round $round: $(wc -l <out) of $next"
  done
  echo "# $killed kills, $continued runs continued" >&3
  [ "$killed" -ge "$wanted" ]
}

@test "an unfinished run: what came to an input that was done is read, too; a pipe that was is not" {
  seq 1000001 1003000 >first
  lines_of 30000 >second
  awk '!seen[$0]++' first second >want
  files=(dedup --stats none --filter exact --checkpoint-every 1 --state s -o out)
  run -1 bash -c 'ulimit -f 500; exec "$SLUICE" "$@"' - "${files[@]}" first second
  [ "$(sluice inspect --json s | jq .unfinished.current)" -eq 1 ]
  echo 2000000 >>first
  run -0 --separate-stderr sluice dedup --filter exact --state s -o out first second
  says "'second' from byte" "'first' from byte 24,000 of 24,008"
  { cat want && echo 2000000; } | sort >sorted
  sort out | cmp - sorted
  rm -f s s.* out
  run -1 bash -c 'ulimit -f 500; cat first | "$SLUICE" "$@"; exit "${PIPESTATUS[1]}"' - "${files[@]}" - second
  run -0 --separate-stderr bash -c 'echo more | "$SLUICE" "$@"' - "${files[@]}" - second
  says "standard input" "is not read" "once more"
  { seq 1000001 1003000 && echo 2000000 && awk '!seen[$0]++' second; } | cmp - out
}

@test "one file is known whether it is written by >>, -o or another name" {
  for i in {1..6}; do seq $((3 * i)) $((3 * i + 2)) >"in.$i"; done
  quiet=("${short[@]}" --stats none)
  sluice "${quiet[@]}" in.1 >>out
  sluice "${quiet[@]}" in.2 -o out
  sluice "${quiet[@]}" in.3 >>out
  sluice "${quiet[@]}" in.4 -o other --duplicates out
  ln out linked
  sluice "${quiet[@]}" in.5 -o linked
  sluice "${quiet[@]}" in.6 -o out
  cat in.1 in.2 in.3 in.5 in.6 | cmp - out
  [ ! -e out.cut ] && [ ! -e linked.cut ]
}

@test "--abandon with another output cuts the old one back, to a file with its mode" {
  (umask 077 && : >out)
  unfinished --state s -o out input
  chmod 600 out
  kept=$(sluice inspect --json s | jq '.outputs[0].bytes')
  cp out torn
  echo other >other
  run -0 --separate-stderr sluice "${again[@]}" --abandon -o elsewhere other
  says "out' was cut back" out.cut
  head -c "$kept" torn | cmp - out
  tail -c +$((kept + 1)) torn | cmp - out.cut
  [ "$(stat -c %a out.cut)" = 600 ]
  refused 2 "${again[@]}" other -o out --duplicates out.cut
  says "'out.cut'" "write to another file"
  refused 2 dedup --state out.cut other -o out
  says "where --state is kept"
}

@test "a finished run: tables that grew are read on by the columns of their headers" {
  table=(dedup --filter exact --window 2 --csv --key id --state s)
  printf 'x,id\na,1\nb,2\nc,3\n' >one
  printf 'x,id\nd,4\ne,5\nf,6\n' >two
  sluice "${table[@]}" one two -o out 2>err
  printf 'g,7\n' >>one
  printf 'h,8\ni,8\n' >>two
  printf 'x,id\nj,9\n' >three
  sluice "${table[@]}" one two three -o out --stats none
  holds out 'x,id\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\ng,7\nh,8\nj,9\n'
  mv out yesterday
  printf 'k,10\n' >>two
  sluice "${table[@]}" one two three -o out --stats none
  holds out 'x,id\nk,10\n'
  mv out yesterday
  sluice "${table[@]}" one two three -o out 2>err
  holds out 'x,id\n'
}

@test "an unfinished run: another output or flag is refused, and a renamed input is named and taken" {
  unfinished --state s -o out input
  refused 2 "${again[@]}" -o out --duplicates twice input
  says "has no --duplicates" "'twice'" "run the same command again" --abandon
  [ ! -e twice ]
  refused 2 "${again[@]}" -o out --invert input
  says "'--invert'" "none of the flags"
  # A pipe's records may have been collected in a file, but --output would replace it.
  rm -f t t.*
  run -1 bash -c 'ulimit -f 500; set -o pipefail; "$SLUICE" dedup --stats none --filter exact --checkpoint-every 1 \
    --state t input | cat'
  refused 2 dedup --stats none --filter exact --state t input -o collected
  says "a pipe"
  mv input input.1
  echo new >input
  refused 2 "${again[@]}" -o out input
  says "'input.1' is that file" "in place of 'input'"
  sluice "${again[@]}" -o out input.1
  cmp out want
  sluice "${again[@]}" -o out input
  { cat want && echo new; } | cmp - out
}

@test "a hard link to a state shares its lock" {
  printf 'a\n' | sluice "${again[@]}" >out
  ln s linked
  mkfifo feed
  start dedup --stats none --state s feed
  exec 7>feed
  echo b >&7
  eventually holds out 'a\nb\n' >/dev/null
  echo c >input
  refused 2 dedup --stats none --state linked input
  says "'linked'" "another name"
  # The state that replaced it is locked as well.
  ln s linked-2
  refused 2 dedup --stats none --state linked-2 input
  exec 7>&-
  ends_with 0
  sluice dedup --stats none --state linked input >out2
  holds out2 'c\n'
}

@test "copied elsewhere, with its files, a state continues" {
  unfinished --state s -o out input
  mkdir there
  cp s out input there
  cd there
  sluice "${again[@]}" -o "$PWD/out" "$PWD/input"
  cmp out ../want
}

@test "whatever is written, a run that is continued writes the same" {
  lines_of 20000 >input
  tr '\n' '\0' <input >input.nul
  { echo id,x && cat input; } | tr , '\t' >input.tsv
  tr , ' ' <input >input.fields
  for flags in "--invert input" "--null input.nul" "--tsv --key id input.tsv" "--csv --no-header --key 1 input" \
    "--window 5k --posterior --learn-priors input" "--window 5k --posterior --prior-field 3 --key 1 input.prior" \
    "--filter bloom,keys=1000 input" "--key 3 --strict input.prior"; do
    awk '{ print $1, $2, 0.001 }' input.fields >input.prior
    rm -f s s.* out want
    # shellcheck disable=SC2086
    sluice dedup --stats none --seed 1 $flags -o want --duplicates twice 2>/dev/null
    # shellcheck disable=SC2086
    run bash -c 'ulimit -f 250; exec "$SLUICE" "$@"' - dedup --stats none --seed 1 --checkpoint-every 1 \
      $flags -o out --duplicates twice-2 --state s
    [ "$status" -eq 1 ] || [[ $flags == *"--key 3"* ]] || fail "$flags: $output"
    # shellcheck disable=SC2086
    sluice dedup --stats none --seed 1 $flags -o out --duplicates twice-2 --state s 2>/dev/null
    # What was learnt is not in the state, so that only the records are the same.
    if [[ $flags == *learn* ]]; then
      cut -f 1 out >out.x && cut -f 1 want >want.x
      cmp out.x want.x || fail "$flags"
      continue
    fi
    cmp out want || fail "$flags"
    cmp twice twice-2 || fail "$flags"
  done
}
