#!/usr/bin/env bats
# What a key costs in instructions and in cache lines, against bench/guard.tsv: filter, instruction
# set, instructions, lines. Neither moves with the load of the machine.
#
# A figure that is much better must be recorded, or nobody will notice when it is lost again:
# GUARD_WRITE=FILE bats … writes what is measured.
load helper
load ../support/instructions

figures=$BATS_TEST_DIRNAME/../../bench/guard.tsv

setup_file() {
  bench=$(dirname "$SLUICE")/../../bench/sluice_bench
  export bench
}

# Both may rise by 2 %: what another patch of the compiler moves.
@test "a key costs no more instructions and lines than it did" {
  [[ -x $bench ]] || skip "the benchmarks are not built"
  need_instructions "$SLUICE"
  "$bench" guard-lines >lines
  valgrind --quiet --tool=callgrind --instr-atstart=no --collect-atstart=no \
    --callgrind-out-file=counted "$bench" guard-instructions
  # Of each dump: what it is of, with the number of its keys, and its instructions.
  awk -F '\t' 'sub(/^desc: Trigger: Client Request: /, "") { of = $1 "\t" $2; keys = $3 }
    sub(/^totals: /, "") && of != "" { printf "%s\t%.1f\n", of, $0 / keys; of = "" }' counted.* >instructions
  [[ -s instructions ]]
  awk -F '\t' -v OFS='\t' 'FILENAME == "instructions" { counted[$1 FS $2] = $3; next }
    { at = $1 FS $2; print $1, $2, at in counted ? counted[at] : "-", $3 }' instructions lines >measured
  if [[ -n ${GUARD_WRITE:-} ]]; then cp measured "$GUARD_WRITE"; fi
  awk -F '\t' '
    function check(what, now, then, most) {
      if (now == "-" || then == "-") return
      if (now > then * most || now < then * 0.9) {
        printf "%s, %s: %s %s per key, %s in guard.tsv\n", $1, $2, now, what, then
        bad = 1
      }
    }
    FILENAME != "measured" { kept[$1 FS $2] = $3 FS $4; ++of; next }
    !(($1 FS $2) in kept) { printf "%s, %s: add to guard.tsv: %s\n", $1, $2, $0; bad = 1; next }
    {
      split(kept[$1 FS $2], then, FS)
      check("instructions", $3, then[1], 1.02)
      check("lines", $4, then[2], 1.02)
      ++seen
    }
    END {
      if (!of || !seen) bad = 1
      exit bad
    }' "$figures" measured
}

# A call that touches many times the lines of others holds up whoever waits for it.
@test "a filter that grows does so step by step" {
  [[ -x $bench ]] || skip "the benchmarks are not built"
  run "$bench" guard-growth
  echo "$output"
  [[ $status -eq 0 ]]
}

@test "no call touches many more lines than another, after idle time and in bursts" {
  [[ -x $bench ]] || skip "the benchmarks are not built"
  run "$bench" guard-calls
  echo "$output"
  [[ $status -eq 0 ]]
}

@test "Seen costs at most 1.5 times the call of the filter that it holds" {
  [[ -x $bench ]] || skip "the benchmarks are not built"
  need_instructions "$SLUICE"
  valgrind --quiet --tool=callgrind --instr-atstart=no --collect-atstart=no \
    --callgrind-out-file=counted "$bench" guard-seen
  awk -F '\t' 'sub(/^desc: Trigger: Client Request: /, "") { of = $1; who = $2; keys = $3 }
    sub(/^totals: /, "") && of != "" { cost[of, who] = $0 / keys; names[of]; of = "" }
    END {
      for (of in names) {
        printf "%s: %.0f instructions, the filter itself %.0f\n", of, cost[of, "seen"], cost[of, "typed"]
        if (!(cost[of, "typed"] > 0 && cost[of, "seen"] <= 1.5 * cost[of, "typed"])) bad = 1
        ++seen
      }
      exit bad || seen != 3
    }' counted.*
}
