#!/usr/bin/env bats
# What a new user meets first: help, near misses, how numbers and formats are written.
load helper

commands=('' dedup generate 'generate clicks' 'generate lines' filters inspect merge delta apply plan
  model compare count repro)

@test "sluice help COMMAND is sluice COMMAND --help" {
  for command in "${commands[@]}"; do
    # shellcheck disable=SC2086  # a command may be two words
    sluice help $command >one
    # shellcheck disable=SC2086
    sluice $command --help >two
    cmp one two
    grep -q '^Usage: sluice' one
  done
  sluice help help | cmp - <(sluice --help)
  refused 2 help dedupe
  says "there is no command 'dedupe': did you mean dedup?"
}

# fits ARG...: what `sluice ARG...` prints is at most 80 columns wide on a terminal.
fits() {
  local columns
  sluice "$@" >fits.out
  columns=$(LC_ALL=C.UTF-8 wc --max-line-length <fits.out)
  [[ $columns -gt 0 && $columns -le 80 ]] || fail "sluice $*: $columns columns"
}

@test "help and lists fit 80 columns, and lose no word by that" {
  # The measure counts characters, not bytes.
  [ "$(printf '1/256 … λ³' | LC_ALL=C.UTF-8 wc --max-line-length)" -eq 10 ]
  for command in "${commands[@]}"; do
    # shellcheck disable=SC2086  # a command may be two words
    fits $command --help
    # shellcheck disable=SC2086
    fits help $command
  done
  fits --help-all
  fits --version
  fits filters
  fits model
  fits repro --list
  for name in $(sluice model --json | jq -r .name); do fits model "$name" --help; done
  fits model apbf --k 10 --l 7
  # Every word of a list is there, in order.
  sluice filters | tr -s ' \n' ' ' >out
  sluice filters --json | jq -r .summary | while read -r summary; do grep -qF ": $summary" out; done
  sluice model | tr -s ' \n' ' ' >out
  sluice model --json | jq -r '.summary, (.parameters[].meaning), .outputs[]' |
    while read -r text; do grep -qF -e "$text" out; done
  # A text over several lines, and where they begin.
  sluice dedup --help >out
  grep -A 1 -e '--strict ' out | tr -s ' \n' ' ' | grep -qF \
    'Stop at a record that is malformed or lacks the key, instead of passing it through'
  grep -A 1 -e '--strict ' out | tail -n 1 | grep -qE '^ {30}[^ ]'
}

# suggested ARG...: what the sentence suggests that refuses them.
suggested() {
  refused 2 "$@"
  [[ $stderr =~ did\ you\ mean\ ([^?]*)\? ]] || fail "no suggestion in: $stderr"
  echo "${BASH_REMATCH[1]}"
}

@test "near misses of commands and flags are suggested" {
  [ "$(suggested dedupe)" = dedup ]
  [ "$(suggested dedpu)" = dedup ]
  [ "$(suggested insepct x)" = inspect ]
  [ "$(suggested gen)" = generate ]
  [ "$(suggested merg --help)" = merge ]
  [ "$(suggested dedup --windw 10m)" = --window ]
  [ "$(suggested dedup --event_time /t)" = --event-time ]
  [ "$(suggested dedup --dup x)" = --duplicates ]
  [ "$(suggested dedup --checkpoint 10s)" = --checkpoint-every ]
  [ "$(suggested dedup --ndjsn)" = --ndjson ]
  [ "$(suggested plan --expct 5)" = --expect ]
  [ "$(suggested generate clicks --record 5)" = --records ]
  # A required flag, and names that other programs or commands have.
  [ "$(suggested merge a b --outptu c)" = --output ]
  [ "$(suggested plan --keys 5M)" = --expect ]
  [ "$(suggested -v)" = --version ]
  [ "$(suggested dedup -w 1h --event-time 1 --time-format '%d.%m.%Y %H:%M')" = 'strptime:%d.%m.%Y %H:%M' ]
  # What is like nothing, or like several, is only refused.
  refused 2 xyzzy
  says "choose from dedup,"
  refused 2 dedup --xyzzy
  [[ $stderr != *"did you mean"* ]]
  refused 2 dedup --cost-
  [[ $stderr != *"did you mean"* ]]
}

@test "numbers are read alike by every flag" {
  seq 1 1000 >input
  for expect in 1000000 1_000_000 1e6 1M .001G 1000k; do
    sluice dedup --stats json --expect "$expect" --fpr .01 input >out 2>err
    [ "$(stat_of '[.filter.capacity, .filter.target_fpr] | join(" ")')" = "1000000 0.01" ]
  done
  for share in 1/100 1% .01 1e-2; do
    sluice dedup --stats json --audit "$share" input >out 2>err
    [ "$(stat_of .audit.sample)" = 100 ]
  done
  for rate in .5/s 0.5/s 5e-1/s 30/m 1.8k/h; do
    sluice plan --json --window 1h --rate "$rate" | jq -c '.filters[0]' >plan."${rate/\//}"
    cmp plan.30m plan."${rate/\//}" || [ ! -e plan.30m ]
  done
  cmp plan.30m plan..5s
  cmp plan.30m plan.1.8kh
  for fpr in .01 0.01 1e-2 1% 0.0_1; do
    sluice dedup --stats json --filter "bloom,keys=1e3,fpr=$fpr" input >out 2>err
    [ "$(stat_of '[.filter.capacity, .filter.target_fpr] | join(" ")')" = "1000 0.01" ]
  done
  sluice dedup --stats json --window 1e3 input >out 2>err
  [ "$(stat_of .window.size)" = 1000 ]
  sluice dedup --stats json --window .5m --arrival-time --rate 1_000/s --max-record 1e6 --audit 1/1_024 \
    --audit-memory .5MiB --audit-ghosts 1e3 --checkpoint-every 1_000 --state s --slack 5e-2 \
    input >out 2>err
  [ "$(stat_of '[.window.size, .audit.sample, .audit.most_bytes] | join(" ")')" = "30 1024 524288" ]
  sluice dedup --stats json --window 1k --cost-lost 1_0.5 --cost-duplicate .5 input >out 2>err
  [ "$(stat_of '[.inference.cost_lost, .inference.cost_duplicate] | join(" ")')" = "10.5 0.5" ]
  [ "$(sluice generate clicks -n 1e3 --skew .5 --users 1_000 --malformed .1 --duplicates .2 2>&1 >out |
    cut -d ' ' -f 2-3)" = "1,000 records" ]
  sluice plan --json --expect 1e6 --lines 1_0 --fnr .1 >out
  sluice model bloom --m 1e6 --k 7 --n 1_000 --fpr .01 | cmp - \
    <(sluice model bloom --m 1M --k 7 --n 1k --fpr 1%)
  sluice compare --stats json --stream zipf --records 1e4 --distinct .5 --memory 1e5 --filter bloom >out
  [ "$(jq -r '[.stream.records, .stream.memory] | join(" ")' out)" = "10000 100000" ]
  # And refused alike.
  for wrong in 1__0 _1 1_ 1e 1. . 1,000 0x10 -1 1e999; do
    for flag in --expect --fpr --memory --max-record --seed --slack --cost-lost --audit-memory; do
      run -2 sluice dedup --window 10m --arrival-time --audit 1/8 "$flag=$wrong" input
    done
    refused 2 plan --lines="$wrong"
    refused 2 generate clicks --skew="$wrong"
    refused 2 repro --scale="$wrong"
    refused 2 plan --window 1h "--rate=$wrong/s"
    says "--rate '$wrong/s' is no rate, such as 50k/s or .5/s"
  done
}

@test "--json and --ndjson are the records of dedup and compare; --stats json is their output" {
  printf '{"id":1}\n{"id":1.0}\n{"id":2}\n' >input
  for flag in --json --ndjson; do
    gives '{"id":1}\n{"id":2}\n' $flag --key /id input
    sluice compare $flag --key /id --filter exact --stats json input >out
    [ "$(jq -r '[.stream.records, .stream.distinct] | join(" ")' out)" = "3 2" ]
  done
  refused 2 compare --stream zipf --json
  says "--json" "--stats json"
  refused 2 compare --stats xml input
  says "'xml'" "text or json"
}

@test "one is one record, and so on" {
  echo a >input
  run -0 --separate-stderr sluice dedup input
  says "sluice dedup: 1 record, 2 bytes in"
  run -0 --separate-stderr sluice generate lines -n 1
  says "generated 1 record ("
}

@test "a parameter that is given twice must be the same twice" {
  echo a >input
  refused 2 dedup --filter bloom,keys=10 --expect 20 input
  says "--filter says keys=10 and --expect says 20: give one of them"
  refused 2 dedup --filter cohort,fpr=1% --fpr 1e-6 --window 10 input
  says "--filter says fpr=1% and --fpr says 1e-06"
  gives 'a\n' --filter bloom,keys=10000,fpr=0.01 --fpr 1% input
}

@test "a secret that can be guessed is no secret for untrusted keys" {
  echo a >input
  refused 2 dedup --seed 1 --untrusted-keys input
  says --seed --untrusted-keys "give one of them"
}
