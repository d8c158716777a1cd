# shellcheck shell=bash
# What every .bats file loads. The command under test is $SLUICE; SLUICE_COUNTS says how much to do.
#
# Each test runs in a directory of its own, with a limit of time on every command and on itself, and
# with what it started in the background ended at its end.
bats_require_minimum_version 1.5.0

: "${SLUICE:?set it to the path of the sluice command}"
# Statistics for people are not what most tests look at; a small filter is quick to make and save.
# Each run has another secret, under which a filter may lose a line: a test that compares thousands of them
# exactly gives --seed, --filter exact or a tiny --fpr, or it fails now and then.
quiet=(--stats none --expect 10k)
started=()

# count SHORT FULL: how many of something this run of the tests does.
count() {
  if [[ ${SLUICE_COUNTS:-short} == full ]]; then echo "$2"; else echo "$1"; fi
}

# A hang must fail its own test, and what is run in it must end before.
limit_s=$(count 300 3000)
BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-$(count 600 3600)}
export BATS_TEST_TIMEOUT

setup() {
  cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
  local pid
  for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  cd / || return
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
  local disk
  for disk in small before after; do
    if mountpoint --quiet "$BATS_TEST_TMPDIR/$disk"; then umount "$BATS_TEST_TMPDIR/$disk"; fi
  done
}

sluice() {
  timeout --signal=KILL "$limit_s" "$SLUICE" "$@"
}

# seeded: makes $RANDOM repeat what it gave. A test that kills at random moments takes its seed from
# SLUICE_SEED, or a new one, and prints it.
seeded() {
  local seed=${SLUICE_SEED:-$RANDOM}
  echo "# $BATS_TEST_DESCRIPTION: SLUICE_SEED=$seed" >&3
  RANDOM=$seed
}

# start ARG...: the command in the background, with standard output in ./out and error in ./err. Its
# number is in $pid; `ends_with CODE` waits for it. Bats itself waits for descriptor 3.
start() {
  "$SLUICE" "$@" >>out 2>err 3>&- &
  pid=$!
  started+=("$pid")
}

ends_with() {
  local code=0
  wait "$pid" || code=$?
  if [[ $code -ne $1 ]]; then
    echo "ended with $code instead of $1; standard error:"
    cat err
    return 1
  fi
}

# eventually COMMAND...: asks until it holds, for a minute at most, or five with full counts, which run beside
# others that take all cores.
eventually() {
  local deadline
  deadline=$((SECONDS + $(count 60 300)))
  until "$@"; do
    if [[ $SECONDS -ge $deadline ]]; then
      echo "this never came true: $*"
      return 1
    fi
    sleep 0.01
  done
}

# holds FILE TEXT: its bytes are these, with the escapes of printf '%b'.
holds() {
  printf '%b' "$2" | cmp - "$1" || {
    od -c "$1" | head -n 20
    return 1
  }
}

# gives TEXT ARG...: `sluice dedup ARG...` on the present standard input writes exactly these bytes.
gives() {
  local want=$1
  shift
  sluice dedup "${quiet[@]}" "$@" >gives.out
  holds gives.out "$want"
}

# refused CODE ARG...: `sluice ARG...` ends with CODE, one sentence on standard error and nothing on
# standard output. The sentence is left in $stderr.
refused() {
  local code=$1
  shift
  run "-$code" --separate-stderr sluice "$@"
  [[ -z $output ]] || fail "standard output is not empty: $output"
  [[ ${#stderr_lines[@]} -eq 1 ]] || fail "not one line: $stderr"
  [[ $stderr == "sluice"*": error: "* ]] || fail "not an error message: $stderr"
}

# says WORDS...: each is in the last $stderr.
says() {
  local words
  for words in "$@"; do
    [[ $stderr == *"$words"* ]] || fail "'$words' is not in: $stderr"
  done
}

# flip_byte FILE POSITION: changes a byte, whatever it is. A given byte might be the one that stands there.
flip_byte() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf '%b' "\\x$(printf %x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

fail() {
  echo "$*"
  return 1
}

# stat EXPRESSION [FILE]: of the line of statistics that ends FILE (./err if not given), by jq.
stat_of() {
  tail -n 1 "${2:-err}" | jq --raw-output "$1"
}

# lines_of COUNT [SEED]: a stream with three duplicates in ten.
lines_of() {
  sluice generate lines --records "$1" --duplicates 30% --seed "${2:-1}" 2>/dev/null
}

# A disk of one megabyte in ./small; skips the test where mounting is not allowed.
small_disk() {
  mkdir small
  mount -t tmpfs -o size=1m tmpfs small 2>/dev/null || skip "mounting a small disk is not allowed"
}
