#!/usr/bin/env bats
# `sluice plan` for one filter over many sites: how many, how large, and what failures cost.
load helper

# planned FILTER ARG...: of the plan for ARG..., by jq.
planned() {
  local filter=$1
  shift
  sluice plan --json "$@" | jq -r "$filter"
}

# near A B [SHARE]: equal but for that share, 1e-4 if not given; plan prints six digits.
near() {
  awk -v a="$1" -v b="$2" -v e="${3:-1e-4}" 'BEGIN { d = a - b; exit !(d * d <= e * e * b * b + 1e-30) }' ||
    fail "$1 is not $2"
}

@test "sites, sizes and what each rule costs, for people" {
  run -0 sluice plan --window 10m --rate 100k/s --tolerate 1 --fpr 2%
  [[ ${lines[0]} == "sites "*"51 horizontal, each with a window for its share of the keys: the last 10 minutes" ]]
  [[ $output == *"each site  cohort for "*" keys, "*"MiB"* ]]
  [[ $output == *"while 1 of 51 sites does not answer:"*"of new events lost"*"of repeats let through"* ]]
  [[ $output == *"* duplicate"*"1.96 %"*"0"*"  distinct"*"1.96 %"* ]]
  [[ ${lines[-1]} == "duplicate: 1.96 % of new events are lost, 1,961 per second; no repeat is let through" ]]
  run -0 sluice plan --sites 40 --slicing vertical --failed 8 --rule hybrid=3 --fpr 0.4% --expect 1M
  [[ $output == *"40 vertical, with the bits of one Bloom filter, 8 per key"* ]]
  [[ $output == *"* hybrid=3 "*"1.67 %"*"0.123 %"* ]]
}

@test "the numbers of sites and the errors are those of sluice model" {
  local rule limit slicing bits sites
  for slicing in horizontal vertical; do
    for limit in 0.02 0.15; do
      sluice plan --json --slicing "$slicing" --tolerate 3 --fpr "$limit" --alive-fpr 1e-3 \
        --expect 1M >plan.json
      # A Bloom filter with that error: that of a vertical plan, or any that has it.
      bits=$(sluice plan --json --slicing vertical --sites 1 --fpr 1e-3 --expect 1M | jq .site_bits)
      sites=$(jq .sites plan.json)
      sluice model sliced --json --layout "$slicing" --m "$bits" --k 10 --n 1e6 --slices "$sites" \
        --failed 3 --limit "$limit" >model.json
      near "$(jq .needed plan.json)" "$(jq .sites_for_fpr model.json)"
      [ "$(jq '.sites_for_fpr | ceil' model.json)" -le "$sites" ]
      # The model has slices with more keys than others; the plan makes room in each.
      near "$(jq '.rules[0].fpr' plan.json)" "$(jq .fpr model.json)" 1e-3
      for rule in duplicate distinct; do
        near "$(planned ".rules[] | select(.rule == \"$rule\") | .fnr" --slicing "$slicing" --sites 40 \
          --failed 8 --fpr 1e-3)" \
          "$(sluice model sliced --json --layout "$slicing" --m "$bits" --k 10 --n 1e6 --slices 40 \
            --failed 8 --rule $rule | jq .fnr)"
      done
    done
  done
  # Diced: by the rows in which sites failed.
  bits=$(planned .site_bits --slicing vertical --sites 1 --fpr 0.4% --expect 1M)
  for slicing in hv-diced vh-diced; do
    near "$(planned '.rules[0].fpr' --slicing $slicing --inner 8 --sites 40 --failed 8 --fpr 0.4%)" \
      "$(sluice model sliced --json --layout $slicing --m "$bits" --k 8 --n 1e6 --slices 5 --inner 8 \
        --failed 8 | jq .fpr_rows)"
  done
}

@test "--tolerate --fnr is the symmetric case" {
  [ "$(planned .sites --tolerate 2 --fnr 3%)" = 67 ]
  [ "$(planned '.rules[] | select(.chosen) | .rule' --tolerate 2 --fnr 3%)" = distinct ]
  [ "$(planned '.rules[] | select(.chosen) | .fnr <= 0.03' --tolerate 2 --fnr 3%)" = true ]
  [ "$(planned '.rules[] | select(.chosen) | .fnr <= 1e-3 and .fpr <= 1e-3' --tolerate 2 --fnr 1e-3 \
    --fpr 1e-3 --slicing vertical --rule hybrid=12)" = true ]
}

@test "what a site has is what the planner makes for its share" {
  [ "$(planned .filter --window 10m --rate 100k/s --sites 50)" = cohort ]
  [ "$(planned .settings --window 10m --rate 100k/s --sites 50)" = \
    "$(planned '.filters[0].settings' --window 10m --rate 2k/s)" ]
  # A plan of one site is the plan.
  [ "$(planned .site_bytes --window 1M --sites 1 --failed 0)" = "$(planned '.filters[0].bytes' --window 1M)" ]
  [ "$(planned '.site_bytes <= 10485760' --window 10m --rate 1M/s --tolerate 1 --fpr 10% --memory 10MiB)" = true ]
}

@test "a slice that could not be moved is refused, with the number of slices that it takes" {
  refused 1 plan --sites 8 --window 10m --rate 10M/s
  says "511 MiB" "it takes --sites 52"
  sluice plan --json --sites 8 --window 10m --rate 10M/s >plan.json 2>err || [ $? -eq 1 ]
  [ "$(jq -c '[.feasible, .nearest[0].flag, .nearest[0].value]' plan.json)" = '[false,"--sites","52"]' ]
  [ "$(planned .feasible --sites 52 --window 10m --rate 10M/s)" = true ]
  # More of them where the errors alone would take fewer.
  [ "$(planned '[.sites, (.needed | ceil)] | join(" ")' --tolerate 1 --fpr 10% --window 10m --rate 10M/s)" = "52 11" ]
}

@test "what cannot be had is told with the nearest that can, which can" {
  refused 1 plan --tolerate 2 --fpr 1e-6
  says "--fpr 3.09e-05" "--slicing vertical (--sites 11)"
  sluice plan --tolerate 2 --fpr 3.09e-05 >out
  [ "$(planned .sites --tolerate 2 --fpr 1e-6 --slicing vertical)" = 11 ]
  refused 1 plan --tolerate 3000 --fpr 3%
  [[ $stderr =~ --tolerate\ ([0-9]+) ]]
  sluice plan --tolerate "${BASH_REMATCH[1]}" --fpr 3% >out
  refused 1 plan --tolerate $((BASH_REMATCH[1] + 1)) --fpr 3%
}

@test "a window of a count over several sites is refused with the reason" {
  refused 2 plan --sites 3 --window 1M
  says "each would count only its own part of the stream" "--sites 1"
  refused 2 plan --tolerate 1 --fpr 10% --window 1M
  says "its own part of the stream"
}

@test "nonsense is refused with a sentence" {
  while read -r flags; do
    # shellcheck disable=SC2086  # flags and their values
    refused 2 plan $flags
    says "--"
  done <<'END'
--failed 1
--rule distinct --expect 5
--alive-fpr 1e-3
--sites 0
--sites 65537
--sites 1e30
--sites -1
--sites nan
--sites 3.5
--sites 3 --failed 4
--sites 3 --tolerate 1 --fpr 1%
--sites 3 --fnr 1%
--sites 3 --alive-fpr 1%
--sites 3 --repeat-every 5m
--sites 3 --slicing diagonal
--sites 3 --inner 3
--sites 3 --rule hybrid=2
--sites 3 --rule perhaps
--sites 3 --rule hybrid
--sites 3 --rule hybrid=0 --slicing vertical
--sites 3 --rule hybrid=99 --slicing vertical
--sites 6 --slicing hv-diced --inner 4
--sites 3 --slicing vertical --window 10m --rate 5/s
--sites 3 --slicing vertical --rate 5/s
--sites 3 --slicing vertical --expect 5 --lines 2
--sites 3 --expect 0
--sites 3 --memory 512MiB
--sites 3 --memory 0
--sites 3 --rate 5/s
--tolerate 1
--tolerate 0 --fpr 1%
--tolerate 1 --fpr nan
--tolerate 1 --fpr 0
--tolerate 1 --fpr 1
--tolerate 1 --fpr 1% --failed 1
--tolerate 1 --fpr 1% --alive-fpr 1%
--tolerate 1 --fpr 1% --slicing hv-diced --inner 2
END
}

@test "extreme numbers end in a plan or a sentence" {
  for flags in "--sites 65536 --failed 65536 --expect 1" "--sites 65536 --failed 0 --expect 1e15" \
    "--sites 1 --failed 1 --expect 1 --fpr 1e-300" "--tolerate 65535 --fpr 0.999999" \
    "--tolerate 1 --fpr 1e-300" "--tolerate 1 --fnr 1e-300 --slicing vertical" \
    "--sites 65536 --window 100ns --rate 1e-9/s" "--sites 65536 --window 1ns --rate 1e18/s"; do
    code=0
    # shellcheck disable=SC2086  # flags and their values
    sluice plan --json $flags >out 2>err || code=$?
    [ "$code" -le 2 ]
    [ "$code" = 0 ] || [ "$(wc -l <err)" = 1 ]
    run ! grep -iE 'nan|inf\b' out
  done
}
