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

@test "kill -9 at random moments, then the same command again: not one byte differs" {
  seeded
  killed=0 continued=0
  wanted=$(count 20 200)
  for ((round = 0; killed < wanted && round < 20; ++round)); do
    for job in "${jobs[@]}"; do
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
