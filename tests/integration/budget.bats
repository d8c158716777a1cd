#!/usr/bin/env bats
# --memory is what the process may take: at its peak, with its threads and buffers, in every format.
load helper

setup_file() {
  grep -q __asan_init "$SLUICE" && skip "the sanitizer takes memory of its own"
  cd "$BATS_FILE_TMPDIR" || return
  # So many keys touch every page of the largest table.
  "$SLUICE" generate lines --records "$(count 300k 2M)" --seed 1 -o lines 2>log
  "$SLUICE" generate clicks --records "$(count 200k 1M)" --seed 3 -o json 2>log
  (echo id,text && cat lines) >csv
}

setup() {
  cd "$BATS_FILE_TMPDIR" || return
}

# What else is asked for, in turn: each way of planning, and all that takes memory beside a filter.
# KEYS is a number of keys that fills the budget with the lowest error that fits.
others=("" "--window KEYS" "--expect KEYS" "--window 10m --arrival-time --rate 1/s --fpr 1e-6"
  "--duplicates held --state s --checkpoint-every 100k" "--audit 1/16 --untrusted-keys"
  "--window KEYS --duplicates held --state s")

# peak_of KIB THREADS file|pipe FORMAT FLAG...: runs, and prints the peak in KiB.
peak_of() {
  local kib=$1 threads=$2 from=$3 format=$4
  local flags=(--stats json --memory "${kib}KiB" --threads "$threads")
  shift 4
  case $format in
  json) flags+=(--json --key "/user,/ad") ;;
  csv) flags+=(--csv --key id) ;;
  esac
  rm -f s*
  if [ "$from" = file ]; then
    sluice dedup "${flags[@]}" "$@" "$format" >out 2>err
  else
    # shellcheck disable=SC2002  # a pipe is meant
    cat "$format" | sluice dedup "${flags[@]}" "$@" >out 2>err
  fi
  stat_of '.memory_bytes / 1024'
}

@test "the peak stays within every budget: threads, files and pipes, formats, ways of planning" {
  local budgets kib peak reserve turn=0 most=0
  mapfile -t budgets < <(count "$(printf '%s\n' 14336 15000 20000)" \
    "$(for i in {0..29}; do echo $((14336 + i * i * 67)); done)")
  for kib in "${budgets[@]}"; do
    for threads in 1 2; do
      for from in file pipe; do
        for format in lines json csv; do
          # shellcheck disable=SC2206  # flags and their values
          flags=(${others[turn++ % ${#others[@]}]/KEYS/$(((kib - 13 * 1024) * 250))})
          # An audit does not fit into the least.
          if [[ ${flags[*]} == *--audit* && $kib -lt 15000 ]]; then flags=(); fi
          peak=$(peak_of "$kib" "$threads" "$from" "$format" "${flags[@]}")
          echo "--memory ${kib}KiB --threads $threads, $format from a $from, ${flags[*]}: $peak KiB"
          [ "$peak" -le "$kib" ]
          # With --memory alone all but the reserve is used; of a pipe also but an eighth, which may be compressed.
          if [[ ${#flags[@]} -eq 0 ]]; then
            reserve=5000
            if [ "$from" = pipe ]; then reserve=$((5000 + kib / 8)); fi
            [ "$peak" -ge $((kib - reserve)) ]
          fi
        done
      done
    done
  done
}

@test "the kernel says the same: peak resident size of a run that has read everything" {
  mkfifo feed
  : >out
  start dedup --stats json --memory 15000KiB --threads 2 feed
  exec 8>feed
  cat lines >&8
  # What was judged is written when the input pauses.
  eventually grep -qxF "$(tail -n 1 lines)" out
  peak=$(sed -nE 's/^VmHWM:[[:space:]]*([0-9]+) kB/\1/p' "/proc/$pid/status")
  exec 8>&-
  ends_with 0
  echo "the kernel says $peak KiB, the statistics $(stat_of '.memory_bytes / 1024')"
  [ "$peak" -le 15000 ]
  [ "$(stat_of ".memory_bytes / 1024 - $peak | fabs < 300")" = true ]
}

@test "a window that grows forgets its oldest keys early, and says so, rather than exceed its budget" {
  most=$(count 500000 3000000)
  # The last thousand come again, and are still known.
  (seq 1 "$most" && seq $((most - 999)) "$most") >input
  sluice dedup --window 10m --arrival-time --expect 1k --fpr 1e-6 --memory 14MiB --stats json input >out 2>err
  cat err
  stat_of '.memory_bytes <= 14 * 1048576 and .window.growths > 0 and .window.forgotten_early > 0 and
           .duplicates >= 1000 and .duplicates < 1010 and .filter.keys > 50000' | grep -qx true
  grep -q 'warning: more keys came in a window than --memory has room for' err
  # Enough memory: nothing is forgotten, nothing is said.
  sluice dedup --window 10m --arrival-time --expect 1k --fpr 1e-6 --memory 64MiB --stats json input >out 2>err
  stat_of '.window.forgotten_early == 0 and .window.growths > 0' | grep -qx true
  run -1 grep warning err
  # By event time, too.
  awk '{print $1, int(NR / 1000)}' input >timed
  sluice dedup --key 1 --window 1h --event-time 2 --expect 1k --fpr 1e-6 --memory 14MiB \
    --stats json timed >out 2>err
  stat_of '.memory_bytes <= 14 * 1048576 and .window.forgotten_early > 0 and .late == 0 and
           .duplicates >= 1000 and .duplicates < 1010' | grep -qx true
}

@test "a budget that long records exceed is said to be exceeded" {
  (head -c 20M /dev/zero | tr '\0' x && echo) >input
  sluice dedup --memory 14MiB --stats json input >out 2>err
  stat_of '.memory_bytes > 14 * 1048576' | grep -qx true
  grep -qE 'warning: the run took [0-9.]+ MiB at its peak, more than --memory 14MiB' err
  seq 1 1000 >input
  sluice dedup --memory 14MiB --stats json input >out 2>err
  run -1 grep warning err
}

@test "a state keeps the budget of its window" {
  seq 1 100000 >input
  flags=(--window 10m --arrival-time --expect 1k --fpr 1e-6 --state kept --stats json)
  sluice dedup "${flags[@]}" --memory 14MiB input >out 2>err
  seq 100001 400000 >rest
  # Without --memory the limit is that of the state.
  sluice dedup --window 10m --arrival-time --state kept --stats json rest >out 2>err
  stat_of '.window.forgotten_early > 0 and .memory_bytes <= 14 * 1048576' | grep -qx true
  refused 2 dedup "${flags[@]}" --memory 15MiB input
  says "--state 'kept'" "memory="
}
