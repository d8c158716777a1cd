#!/usr/bin/env bats
# --threads: how many makes no difference but for the time.
load helper

# Inputs are of some megabytes: the second thread joins after four reads of 256 KiB.

# same ARG...: `sluice dedup ARG...` ends well, and writes and says the same with one thread and with
# two. What it wrote to ./aside, ./late and ./state must be the same, too.
same() {
  same_code 0 "$@"
}

# same_code CODE ARG...: the same for a run that ends with this code.
same_code() {
  local wanted=$1 threads code
  shift
  for threads in 1 2; do
    rm -f aside late state state.previous
    code=0
    sluice dedup --seed 1 --stats json --threads "$threads" "$@" >all 2>"err.$threads" ||
      code=$?
    # The path of standard output is in the state.
    mv all "out.$threads"
    [[ $code -eq $wanted ]] || fail "$*: ended with $code instead of $wanted: $(head -c 300 "err.$threads")"
    # Only the time and the memory differ. A sanitizer's memory is more than any budget.
    sed -E -e '/warning: the run took .* at its peak/d' -e 's/"(seconds|records_per_second|memory_bytes|bytes_per_second)":[^,}]*//g' "err.$threads" \
      >"said.$threads"
    cat aside late state >"files.$threads" 2>/dev/null || true
  done
  local what
  for what in out said files; do
    cmp "$what.1" "$what.2" || fail "$* <$what>: $(head -c 300 "$what.1") $(head -c 300 "$what.2")"
  done
}

@test "files: the same bytes, statistics and states" {
  lines_of 200k >input
  lines_of 100k 2 >more_lines
  same input
  same input --filter none
  same input more_lines input --duplicates aside --state state
  same input --state state --checkpoint-every 10k --audit 1/16
  same input --invert --duplicates aside
  # Its secret is new in each run, and so are its statistics.
  for threads in 1 2; do
    sluice dedup --stats none --untrusted-keys --fpr 1e-12 --threads $threads input >"out.$threads"
  done
  cmp out.1 out.2
  same input --window 10k --refresh
  same input --key 1 -d , --window 1000 --filter apbf --fpr 1e-3
  same input --memory 14MiB
  awk '!seen[$0]++' input >want
  sluice dedup --threads 2 --stats none --filter exact input | cmp - want
}

@test "pipes: the same bytes and statistics" {
  lines_of 200k >input
  for threads in 1 2; do
    # shellcheck disable=SC2002  # a pipe, not a file
    cat input | sluice dedup --seed 1 --threads $threads --stats none | cat >"pipe.$threads"
    # A feeder with pauses: now two work, now one waits.
    { head -n 60000 input && sleep 0.1 && tail -n +60001 input; } |
      sluice dedup --seed 1 --threads $threads --stats none >"pause.$threads"
  done
  sluice dedup --seed 1 --threads 1 --stats none input >want
  for name in pipe.1 pipe.2 pause.1 pause.2; do cmp "$name" want; done
}

@test "NUL, CSV and JSON, with headers, quotes, event time and late records" {
  lines_of 100k >input
  tr '\n' '\0' <input >nul
  same --null nul
  awk 'BEGIN { print "id,t,note" }
    { printf "%s,%d,\"a \"\"b\"\"\n%d\"\n", substr($0, 5, 5), 1700000000 + NR - NR % 7 * 40 * (NR % 100 == 0), NR % 3
      if (NR % 1000 == 0) print "short" }' input >table
  same --csv --key id table table --duplicates aside
  same --csv --key id --event-time t --window 100s --late mark --late-output late table
  same --csv --key id --event-time t --window 100s --late drop table
  sluice generate clicks --records 50k --seed 3 >clicks.ndjson 2>log
  same --json --key /user,/ad clicks.ndjson clicks.ndjson
  same --json --key /user --window 5k --cost-lost 20 --posterior clicks.ndjson
}

@test "errors: what stands before is written, the message and the code are the same" {
  lines_of 100k >input
  { cat input && echo only && cat input; } >bad
  same_code 1 --key 2 -d , --strict bad
  grep -q "record 100,001: there is no field 2 in 'only'" err.2
  { cat input && head -c 3000 /dev/zero | tr '\0' x && echo && cat input; } >long
  same_code 1 --max-record 2KiB long
  grep -q 'record 100,001 is longer' err.2
  { echo a,b && cat input; } >one
  { echo b,a && cat input; } >two
  same_code 1 --csv one two
  grep -q 'differs from the first' err.2
  printf 'cut off' >>input
  same input input
  refused 2 dedup --threads 0 input
  says --threads "'0'" "1 or 2"
  refused 2 dedup --threads 3 input
}

@test "a full disk is said once, with the code of a failed run" {
  small_disk
  lines_of 200k >input
  for threads in 1 2; do
    refused 1 dedup --stats none --threads $threads --output small/out input
    says "small/out" "space"
  done
}

@test "a reader that leaves ends the run quietly" {
  lines_of 400k >input
  for threads in 1 2; do
    run -0 --separate-stderr bash -c 'set -o pipefail
      "$SLUICE" dedup --stats none --threads '$threads' --state s input | head -n 1'
    [ -z "$stderr" ]
    [ "$(sluice inspect --json s | jq .keys)" = 0 ]
  done
}

@test "killed in the middle, the state has no record that the output has not" {
  export LC_ALL=C
  seeded
  lines_of 200k >input
  sort -u input >want
  saved=0
  for ((i = 0; i < $(count 4 40); ++i)); do
    rm -f s s.* out
    start dedup --threads 2 --stats none --fpr 1e-9 --seed 1 --checkpoint-every 5000 --state s input
    eventually test -e s
    sleep "0.0$((RANDOM % 10))"
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    saved=$((saved + 1))
    sluice dedup --threads 2 --stats none --state s --abandon input >rest
    sort -u out rest | comm -23 want - >missing
    [[ ! -s missing ]] || fail "kill $((i + 1)): $(wc -l <missing) records are in no output"
  done
  [ "$saved" -gt 0 ]
}

@test "interrupted in the middle, all that was read is written and saved" {
  lines_of 400k >input
  for source in file pipe; do
    rm -f s s.* out drain
    mkfifo drain
    if [[ $source == file ]]; then
      "$SLUICE" dedup --threads 2 --stats json --fpr 1e-12 --state s input >drain 2>err 3>&- &
      pid=$!
    else
      exec 6< <(cat input)
      "$SLUICE" dedup --threads 2 --stats json --fpr 1e-12 --state s <&6 >drain 2>err 3>&- 6<&- &
      pid=$!
    fi
    started+=("$pid")
    exec 8<drain
    head -c 1000 <&8 >out
    kill -INT "$pid"
    cat <&8 >>out
    exec 8<&-
    ends_with 130
    [ "$(stat_of .bytes_out)" = "$(stat -c %s out)" ]
    [ "$(stat_of .distinct)" = "$(wc -l <out)" ]
    [ "$(stat_of .records)" -lt 400000 ]
    # All that it took from the pipe is in the output: what follows is what is left there.
    if [[ $source == pipe ]]; then
      unfinished=$(stat_of .unfinished_bytes)
      read_bytes=$(stat_of .bytes_in)
      head -c $((read_bytes - unfinished)) input | awk '!seen[$0]++' | cmp - out
      exec 6<&-
    else
      sluice dedup --threads 2 --stats none --state s input >>out
      awk '!seen[$0]++' input | cmp - out
    fi
  done
}
