#!/usr/bin/env bats
# `sluice plan`: what can be had, what is chosen and why; and that `sluice dedup` does the same.
load helper

# planned FILTER ARG...: the chosen field of the plan for ARG...
planned() {
  local filter=$1
  shift
  sluice plan --json "$@" | jq -r "$filter"
}

@test "a table, the choice with its reason, and a command to run" {
  run -0 sluice plan --window 100k --fpr 1e-4
  [[ ${lines[0]} == *filter*keys*bytes*bits/key*fpr*fnr*slack*npws*lines*"x bound"* ]]
  [[ ${lines[1]} == "* cohort "* ]]
  [[ $output == *"chosen: cohort is the default for windows"* ]]
  [[ ${lines[-1]} == "sluice dedup --window 100k --fpr 1e-4" ]]
  run -0 sluice plan
  [[ $output == *"assumed: no --expect"* && $output == *"* growing"* ]]
}

@test "any sensible subset is planned, and dedup runs what plan says" {
  lines_of 1000 >input
  for flags in "" "--fpr 1e-3" "--expect 5k" "--expect 5k --fpr 1e-9" "--window 5k" \
    "--window 5k --fpr 2%" "--window 5k --refresh --fpr 1e-3" "--window 10m --rate 50/s" \
    "--window 10m --expect 5k --fpr 1e-4" "--window hour --rate 1/s" "--window 10m" \
    "--window 5k --slack 2%" "--window 5k --npws 3% --fpr 1e-5" "--window 5k --slack 1e-3" \
    "--memory 16MiB" "--memory 16MiB --fpr 20%" "--memory 16MiB --window 5k" \
    "--memory 16MiB --expect 500k" "--memory 16MiB --window 1m --rate 5k/s --fpr 1e-5"; do
    echo "plan $flags"
    # shellcheck disable=SC2086  # flags and their values
    sluice plan --json $flags >plan.json
    # shellcheck disable=SC2086
    sluice dedup --stats json $flags <(cat input) >out 2>err
    chosen=$(jq -r '.chosen | split(",")[0]' plan.json)
    [ "$(stat_of .filter.name)" = "$chosen" ]
    # The very filter: all its parameters but the error that it was asked for.
    jq -r '.filters[0].settings' plan.json | tr , '\n' >planned
    stat_of '.filter.parameters | to_entries[] | .key + "=" + .value' | grep -v '^fpr=\|^seed=' >made
    diff planned made
  done
}

@test "the command that is printed runs" {
  lines_of 1000 >input
  for flags in "--window 5k --lines 1 --fpr 5%" "--expect 5k --lines 1 --fpr 1e-9" \
    "--window 5k --slack 2% --lines 2" "--expect 5k --fnr 50% --fpr 1%"; do
    # shellcheck disable=SC2086  # flags and their values
    command=$(sluice plan --json $flags | jq -r .command)
    echo "$command"
    eval "$command --stats none input" >out
    [ -s out ]
  done
}

@test "a plan for what a plan promises is that plan" {
  for flags in "--window 100k --fpr 1e-4" "--expect 20k --fpr 1e-3" "--window 1M --memory 16MiB" \
    "--expect 300k --memory 14MiB" "--window 10m --rate 100/s --fpr 1e-5" \
    "--window 1010 --fpr 1e-3"; do
    # shellcheck disable=SC2086  # flags and their values
    sluice plan --json $flags | jq -c '.filters[0]' >first
    what=$(sed -E 's/ ?--(fpr|memory) [^ ]*//g' <<<"$flags")
    promise="--fpr $(jq -r .fpr first) --memory $(jq -r .memory first) --lines $(jq -r .lines first)"
    if [ "$(jq 'has("slack")' first)" = true ]; then
      promise+=" --slack $(jq -r .slack first) --npws $(jq -r .npws first)"
    fi
    echo "plan $what $promise"
    # shellcheck disable=SC2086
    sluice plan --json $what $promise | jq -c '.filters[0]' >second
    [ "$(jq -r '.settings, .bytes, .fpr' first)" = "$(jq -r '.settings, .bytes, .fpr' second)" ]
  done
}

@test "very large numbers are told as they may be given, and what is too large for the machine in flags" {
  refused 1 plan --window 1e18
  says 'no filter can do --window 1e18;'
  refused 1 plan --expect 10000000000G
  says 'no filter can do --expect 1e19;'
  refused 2 dedup --window 8990G
  says 'would need more memory than there is (' 'for this process): give a smaller --window or a larger --fpr'
  refused 2 dedup --expect 1e12
  says 'give a smaller --expect or a larger --fpr'
  refused 2 dedup --window 1h --arrival-time --rate 1e9/s
  says 'give a smaller --rate or a larger --fpr'
  refused 2 plan --window 10m --rate 1e30/s
  says "--rate '1e30/s' is too large: give keys per second, minute, hour or day"
}

@test "what cannot be had is told with the nearest that can, which can" {
  refused 1 plan --window 1M --fpr 1e-6 --memory 16MiB
  [[ $stderr == *"--memory 17.5MiB, or --fpr "*", or --window "* ]]
  sluice plan --json --window 1M --fpr 1e-6 --memory 16MiB >plan.json 2>err || [ $? -eq 1 ]
  grep -qF -- "--memory 17.5MiB, or --fpr " err
  [ "$(jq -r .feasible plan.json)" = false ]
  jq -r '.nearest[] | .flag + " " + .value' plan.json >nearest
  [ "$(wc -l <nearest)" -ge 3 ]
  while read -r flag value; do
    case $flag in
    --memory) sluice plan --window 1M --fpr 1e-6 --memory "$value" >out ;;
    --fpr) sluice plan --window 1M --fpr "$value" --memory 16MiB >out ;;
    --window) sluice plan --window "$value" --fpr 1e-6 --memory 16MiB >out ;;
    esac
    grep -q '^\*' out
  done <nearest
}

@test "where one change will not do, several are named" {
  refused 1 plan --window 11 --memory 12582931 --slack 0.0814
  [[ $stderr == *"no filter can do --window 11 --slack 0.0814 --memory 12582931 "*"; "*"--memory "*" --slack "* ]]
  refused 1 plan --window hour --rate 100k/s --fpr 1e-6 --memory 18MiB
  [[ $stderr == *"--window hour"* ]]
}

@test "the command does what was planned where memory alone is given" {
  for flags in "--memory 17MiB --lines 2" "--memory 17MiB --fnr 5%" "--memory 17MiB --fpr 30% --fnr 90%"; do
    # shellcheck disable=SC2086  # flags and their values
    sluice plan --json $flags >plan.json
    command=$(jq -r .command plan.json)
    # shellcheck disable=SC2086
    $command --stats json </dev/null 2>err
    [ "$(tail -n 1 err | jq .filter.bytes)" -le "$(jq '.filters[0].bytes' plan.json)" ]
    [ "$(tail -n 1 err | jq '.filter.bytes > 3500000')" = true ]
    [ "$(tail -n 1 err | jq -c '.window.size')" = "$(jq -c '.filters[0].window' plan.json)" ]
  done
}

@test "a planned command that names its filter has the room of the plan" {
  sluice plan --json --window 60s --rate 200/m --fpr 0.05 --lines 1 >plan.json
  command=$(jq -r .command plan.json)
  $command --stats json </dev/null 2>err
  [ "$(tail -n 1 err | jq .filter.bytes)" = "$(jq '.filters[0].bytes' plan.json)" ]
}

@test "nonsense is refused with a sentence" {
  for flags in "--rate 5/s" "--window 1k --rate 5/s" "--window 1k --expect 5" "--slack 5%" \
    "--window 10m --memory 64MiB" "--expect 0" "--expect 5 --fpr 2" "--lines 0 --expect 5" \
    "--fnr 5%" "--memory 1MiB" "--refresh" "--window 0" "--window 10m --rate 5"; do
    # shellcheck disable=SC2086  # flags and their values
    refused 2 plan $flags
    says "--"
  done
}

@test "--lines and --fnr choose among what is feasible" {
  [ "$(planned .chosen --window 100k --fpr 5% --lines 1)" = apbbf,layout=line ]
  [ "$(planned .chosen --expect 1M --fpr 1e-9 --lines 1)" = bloom,layout=blocked ]
  [ "$(planned '[.filters[] | select(.feasible) | .filter] | contains(["stable"])' \
    --window 1k --fpr 1% --fnr 30%)" = true ]
  [ "$(planned '.filters[] | select(.filter == "stable") | .why_not' --window 1k)" = \
    "lets some duplicates through: needs --fnr" ]
}

@test "on a terminal the columns are explained; elsewhere the table stands alone" {
  script --quiet --return --command '"$SLUICE" plan --window 10k' seen >/dev/null </dev/null
  tr -d '\r' <seen >plain
  for column in keys bytes fpr fnr slack npws lines 'x bound'; do
    grep -qE "^$column  +[a-z]" plain
  done
  sluice plan --window 10k >out
  run -1 grep -E '^(npws|lines|x bound) ' out
}
