#!/usr/bin/env bats
# Power cuts: what a disk holds at a random moment of a run, and the same command run on it.
#
# The run writes to a file system in an image that is mounted as a disk. It is stopped, and the image
# is copied as it is: what the kernel has not written to that disk yet is missing from the copy. The
# copy is mounted elsewhere, and the same command finishes the run there.
load helper
load resume

# An empty disk in ./before; skips the test where mounting is not allowed.
new_disk() {
  rm -f disk cut
  truncate --size=64M disk
  mkfs.ext4 -q disk 2>/dev/null || skip "there is no mkfs.ext4"
  mkdir -p before after
  mount -o loop disk before 2>/dev/null || skip "mounting a disk image is not allowed"
}

# run_there FOLDER: the command in that folder, in the background; standard output goes to the end of
# ./piped.
run_there() {
  (cd "$1" && exec "$SLUICE" "${command[@]}" >>piped) 2>err 3>&- &
  pid=$!
  started+=("$pid")
}

# cut_power: stops the run at a random moment, and mounts the disk as it was then in ./after. False:
# the run had ended.
cut_power() {
  local code=0
  sleep "$(random_time "$run_us")"
  kill -STOP "$pid" 2>/dev/null || true
  cp --sparse=always disk cut
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || code=$?
  umount before
  mount -o loop cut after
  [[ $code -eq 137 ]] || { [[ $code -eq 0 ]] || fail "ended with $code: $(cat err)"; return 1; }
}

@test "power cuts at random moments, then the same command again: not one byte differs" {
  seeded
  cuts=0 continued=0
  wanted=$(count 4 50)
  for ((round = 0; cuts < wanted && round < 20; ++round)); do
    for job in "${jobs[@]}"; do
      if ((cuts == wanted || RANDOM % 18 >= $(count 6 18))); then continue; fi
      # shellcheck disable=SC2086
      set_job $job "$(count 20000 60000)"
      # Half of them write to standard output, which nobody but the run can sync.
      if ((RANDOM % 2)); then command=("${command[@]/--output/--stats}") && command=("${command[@]/once/text}"); fi
      new_disk
      cp in.* before
      sync --file-system before
      run_there before
      left=$(date +%s%N)
      wait "$pid" || fail "$(cat err)"
      run_us=$((($(date +%s%N) - left) / 1000))
      mkdir -p want
      rm -f want/*
      for file in piped once again late; do if [[ -e before/$file ]]; then mv "before/$file" want; fi; done
      umount before
      new_disk
      cp in.* before
      sync --file-system before
      run_there before
      if cut_power; then
        cuts=$((cuts + 1))
        run_there after
        wait "$pid" || fail "$(cat err)"
        if grep -q 'continues the unfinished run' err; then continued=$((continued + 1)); fi
      fi
      for file in want/*; do
        cmp "$file" "after/${file#want/}" || fail "cut $cuts: ${file#want/} of ${command[*]}"
      done
      umount after
    done
  done
  echo "# $cuts power cuts, $continued runs continued" >&3
  [ "$cuts" -ge "$wanted" ]
  [ "$continued" -gt 0 ]
}
