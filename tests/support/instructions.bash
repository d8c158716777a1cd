# shellcheck shell=bash
# Instructions, counted by callgrind: where time is noise, they are the same on every run.
#
# Only for optimized builds without sanitizers: `need_instructions PROGRAM` skips the test elsewhere.

need_instructions() {
  command -v valgrind >/dev/null || skip "valgrind is not installed"
  if grep -q __asan_init "$1"; then skip "valgrind cannot run what a sanitizer is in"; fi
  valgrind --tool=none --quiet "$1" --version >/dev/null 2>&1 || skip "valgrind cannot run here"
}

# instructions_in FUNCTION PROGRAM ARG...: how many PROGRAM executes in a function, with all that it
# calls; a pattern such as 'sluice::Dedup::run*'. Vectors are 256 bits wide at most: valgrind knows
# no wider ones. The program's standard output and error are dropped; it may exit with 1.
instructions_in() {
  local function=$1 counted
  shift
  counted=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-fd=9 \
    --toggle-collect="$function" "$@" 9>&1 >/dev/null 2>/dev/null) || [ $? -eq 1 ] || return
  awk '/Collected/ { print $4; found = $4 > 0 } END { exit !found }' <<<"$counted"
}

# at_most_more PERCENT BEFORE AFTER: so many instructions more, or fewer.
at_most_more() {
  awk -v most="$1" -v before="$2" -v after="$3" 'BEGIN {
    more = 100 * (after / before - 1)
    printf "%d instructions before, %d after: %+.2f %%, %s %% allowed\n", before, after, more, most
    exit !(more <= most)
  }'
}
