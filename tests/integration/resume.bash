# shellcheck shell=bash
# Runs that are stopped on their way and continued, and the same runs left alone.

# format, window, threads
jobs=()
for format in lines csv json; do
  for kind in none count time; do
    for threads in 1 2; do jobs+=("$format $kind $threads"); done
  done
done

# make_inputs FORMAT COUNT: in.1, in.2 and in.3, with times that now and then are late. The second
# has no final newline; CSV has fields with newlines, and a byte order mark before one header.
make_inputs() {
  rm -f in.*
  lines_of "$2" | awk -F, -v form="$1" -v count="$2" '
    function start(file) {
      if (form != "csv") return
      if (file == "in.1") printf "\357\273\277" >file
      print "id,time,text" >file
    }
    {
      file = "in." (1 + int(3 * (NR - 1) / count))
      if (file != last) start(last = file)
      time = 1700000000 + int(NR / 1000) - (NR % 50 == 0 ? 5 : 0)
      if (form == "lines") print $1 "," time >file
      if (form == "csv") print $1 "," time "," (NR % 7 == 0 ? "\"a\n\"\"" NR "\"\"\"" : $2) >file
      if (form == "json") print "{\"time\":" time ",\"id\":\"" $1 "\"}" >file
    }'
  head -c -1 in.2 >in.x
  mv in.x in.2
}

# set_job FORMAT WINDOW THREADS COUNT: the inputs, and the command in $command.
set_job() {
  make_inputs "$1" "$4"
  local -A key=([lines]=1 [csv]=id [json]=/id) time=([lines]=2 [csv]=time [json]=/time)
  local filter=(--seed 1)
  if ((RANDOM % 2)); then filter=(--filter exact); fi
  command=(dedup --key "${key[$1]}" "${filter[@]}" --threads "$3")
  case $1 in
    lines) command+=("--delimiter=,") ;;
    *) command+=("--$1") ;;
  esac
  case $2 in
    count) command+=(--window 2k) ;;
    time) command+=(--window 3s --event-time "${time[$1]}" --late mark --late-output late) ;;
  esac
  command+=(in.1 in.2 in.3 --output once --duplicates again --state s --checkpoint-every 1000)
}

# left_alone: the outputs of the command that nobody disturbs, in want/, and how long it takes.
left_alone() {
  local before
  rm -rf want once again late s s.*
  before=$(date +%s%N)
  sluice "${command[@]}" 2>err || fail "$(cat err)"
  run_us=$((($(date +%s%N) - before) / 1000))
  mkdir want
  for file in once again late; do if [[ -e $file ]]; then mv "$file" want; fi; done
  rm -f s s.*
}

# as_left_alone: nothing differs, and nothing lies about.
as_left_alone() {
  local file
  for file in want/*; do cmp "$file" "${file#want/}" || return; done
  [[ $(find . -name 's.*' ! -name s.previous) == "" ]] || fail "files are left: $(ls)"
}

# random_time MOST: a random time below so many microseconds, in seconds.
random_time() {
  local us=$(($1 * RANDOM / 32768))
  printf '%d.%06d' $((us / 1000000)) $((us % 1000000))
}
