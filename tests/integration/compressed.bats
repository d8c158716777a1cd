#!/usr/bin/env bats
# Compressed inputs are read as what they hold, and outputs named .gz or .zst are compressed: in every
# format, in every way into the process, and across stops and kills.
load helper
load resume

# pack KIND <TEXT: one member.
pack() {
  case $1 in
    gz) gzip --stdout ;;
    zst) zstd --quiet --stdout ;;
    *) cat ;;
  esac
}

# unpacked FILE: its contents, whatever its kind; the end of a compressed file must be sound.
unpacked() {
  case $1 in
    *.gz) gzip --test "$1" && gzip --decompress --stdout "$1" ;;
    *.zst) zstd --quiet --test "$1" && zstd --quiet --decompress --stdout "$1" ;;
    *) cat "$1" ;;
  esac
}

@test "every compression, format, number of threads and way in gives the bytes of the plain input" {
  for format in lines csv json; do
    make_inputs "$format" "$(count 6000 60000)"
    local -A key=([lines]=1 [csv]=id [json]=/id)
    flags=(--stats none --filter exact --key "${key[$format]}")
    if [[ $format == lines ]]; then flags+=("--delimiter=,"); else flags+=("--$format"); fi
    sluice dedup "${flags[@]}" in.1 in.2 in.3 >want
    sluice dedup "${flags[@]}" in.1 >want.1
    for kind in gz zst; do
      for i in 1 2 3; do
        # Members end anywhere, also within a record.
        size=$(stat -c %s in.$i)
        { head -c $((size / 3)) in.$i | pack $kind; tail -c +$((size / 3 + 1)) in.$i | pack $kind; } >in.$i.$kind
      done
      for threads in 1 2; do
        sluice dedup "${flags[@]}" --threads $threads in.1.$kind in.2.$kind in.3.$kind | cmp - want
        sluice dedup "${flags[@]}" --threads $threads in.1 in.2.$kind in.3 | cmp - want
        sluice dedup "${flags[@]}" --threads $threads <in.1.$kind | cmp - want.1
        # shellcheck disable=SC2002
        cat in.1.$kind | sluice dedup "${flags[@]}" --threads $threads | cmp - want.1
        dd if=in.1.$kind bs=97 status=none | sluice dedup "${flags[@]}" --threads $threads | cmp - want.1
        sluice dedup "${flags[@]}" --threads $threads in.1.$kind in.2.$kind in.3.$kind -o out.$kind
        unpacked out.$kind | cmp - want
      done
    done
  done
}

@test "other commands and flags read compressed files, too, and --binary reads their bytes" {
  lines_of 1000 >plain
  gzip --keep plain
  zstd --quiet plain
  sluice compare plain --expect 1k --stats json 2>/dev/null | jq 'del(.source, .filters[].seconds?)' >want
  for file in plain.gz plain.zst; do
    sluice compare "$file" --expect 1k --stats json 2>/dev/null |
      jq 'del(.source, .filters[].seconds?)' >got
    [ "$(jq .records got)" = "$(jq .records want)" ]
    rm -f s s.* once again
    sluice dedup --stats none --filter growing --state s plain -o once
    sluice dedup --stats none --filter growing --state s --forget "$file" </dev/null
    sluice dedup --stats none --filter growing --state s --abandon plain -o again
    cmp again once
    sluice dedup --stats none --binary --filter none "$file" | cmp "$file" -
    sluice dedup --stats none --binary --filter none <(cat "$file") | cmp "$file" -
  done
  sluice generate lines --records 1000 --duplicates 30% --seed 1 -o made.gz 2>/dev/null
  unpacked made.gz | cmp - plain
}

@test "members, frames to skip and zeros at the end are read; anything else is an error" {
  seq 1 1000 >first
  seq 500 1500 >second
  seq 1 1500 >want
  cat <(pack gz <first) <(pack gz </dev/null) <(pack gz <second) >in.gz
  sluice dedup "${quiet[@]}" in.gz | cmp - want
  cat in.gz <(head -c 10000 /dev/zero) >padded.gz
  sluice dedup "${quiet[@]}" padded.gz | cmp - want
  skipped='\x5a\x2a\x4d\x18\x04\0\0\0abcd'
  { printf '%b' "$skipped"; pack zst <first; printf '%b' "$skipped"; pack zst <second; } >in.zst
  sluice dedup "${quiet[@]}" in.zst | cmp - want
  sluice dedup "${quiet[@]}" <(cat in.zst) | cmp - want
  for kind in gz zst; do
    { cat in.$kind && echo rest; } >rest.$kind
    for threads in 1 2; do
      run -1 --separate-stderr sluice dedup "${quiet[@]}" --threads $threads rest.$kind -o out
      cmp out want
      says "'rest.$kind'" "after" "byte $(stat -c %s in.$kind | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta')" "sluice ..."
    done
  done
  # lz4 has the same frames to skip.
  { printf '%b' "$skipped"; printf '\x04\x22\x4d\x18rest'; } >other
  run -1 --separate-stderr sluice dedup "${quiet[@]}" other
  says "'other'" "after frame 1"
}

@test "a file that is cut off or damaged gives the records before that, and exit code 1" {
  seq 1 50000 >plain
  for kind in gz zst; do
    pack $kind <plain >whole.$kind
    size=$(stat -c %s whole.$kind)
    for part in 5 9 11 1000 $((size / 2)) $((size - 9)) $((size - 1)); do
      head -c "$part" whole.$kind >cut.$kind
      for threads in 1 2; do
        run -1 --separate-stderr sluice dedup --stats none --filter exact --threads $threads cut.$kind
        says "'cut.$kind' is cut off" " 1 "
        # Whole records, from the first on.
        if [[ -n $output ]]; then echo "$output" >out; else : >out; fi
        cmp --bytes "$(stat -c %s out)" out plain
        run -1 --separate-stderr sluice dedup --stats none --filter exact --threads $threads <(cat cut.$kind)
        says "is cut off"
      done
    done
    [ "$(wc -l <out)" -gt 20000 ]
    # One changed byte in the middle: found at the latest by the checksum.
    cp whole.$kind wrong.$kind
    printf '\xff\x00\xff' | dd of=wrong.$kind bs=1 seek=$((size / 2)) conv=notrunc status=none
    run -1 --separate-stderr sluice dedup --stats none --filter exact wrong.$kind -o out.$kind
    says "'wrong.$kind' is damaged" " 1, near compressed byte" "undamaged copy"
    # What was written is a sound file nevertheless.
    unpacked out.$kind >out
    cmp --bytes 100000 out plain
  done
  # A window that is too large, and a dictionary.
  printf '\x28\xb5\x2f\xfd\x00\x90\x29\0\0text\n' >large.zst
  run -1 --separate-stderr sluice dedup --stats none --filter exact large.zst
  says "'large.zst' needs a zstd window of 256 MiB" "128 MiB" "zstd -dc -M2048MB 'large.zst' | sluice"
  printf '\x28\xb5\x2f\xfd\x21\x05\x05\x29\0\0text\n' >dictionary.zst
  run -1 --separate-stderr sluice dedup --stats none --filter exact dictionary.zst
  says "'dictionary.zst' needs a dictionary" "zstd -dc -D"
}

@test "what a compressed pipe brings is delivered while it is idle, and so is a compressed output" {
  mkfifo in.fifo middle.zst middle.gz
  for kind in zst gz; do
    for threads in 1 2; do
      rm -f out
      "$SLUICE" dedup "${quiet[@]}" --threads $threads <in.fifo -o middle.$kind 2>err.1 3>&- &
      first=$!
      start dedup "${quiet[@]}" --threads $threads middle.$kind
      started+=("$first")
      exec 7>in.fifo
      printf 'a\nb\n' >&7
      eventually holds out 'a\nb\n' >/dev/null
      printf 'a\nc\n' >&7
      eventually holds out 'a\nb\nc\n' >/dev/null
      # A stop ends the one that waits, with its thread.
      kill -TERM "$pid"
      ends_with 143
      exec 7>&-
      wait "$first" || true
    done
  done
}

# compressed_job FORMAT WINDOW THREADS COUNT: the job of set_job with compressed inputs and outputs.
compressed_job() {
  set_job "$@"
  local -a kinds=(gz zst)
  local i kind
  for i in 1 2 3; do
    kind=${kinds[RANDOM % 2]}
    pack "$kind" <in.$i >"in.$i.$kind"
    command=("${command[@]/#in.$i/in.$i.$kind}")
  done
  names=(once again late)
  for i in "${!names[@]}"; do
    kind=${kinds[RANDOM % 2]}
    command=("${command[@]/#${names[i]}/${names[i]}.$kind}")
    names[i]+=.$kind
  done
}

@test "kill -9 at random moments with compressed files: the contents are those of a run left alone" {
  seeded
  killed=0 continued=0
  wanted=$(count 6 100)
  for ((round = 0; killed < wanted && round < 20; ++round)); do
    for job in "${jobs[@]}"; do
      if ((killed >= wanted || RANDOM % 18 >= $(count 4 18))); then continue; fi
      rm -rf want once.* again.* late.* s s.*
      # shellcheck disable=SC2086
      compressed_job $job "$(count 20000 60000)"
      before=$(date +%s%N)
      sluice "${command[@]}" 2>err || fail "$(cat err)"
      run_us=$((($(date +%s%N) - before) / 1000))
      mkdir want
      for file in "${names[@]}"; do if [[ -e $file ]]; then mv "$file" want; fi; done
      rm -f s s.*
      for ((i = 0; ; ++i)); do
        "$SLUICE" "${command[@]}" 2>err 3>&- &
        pid=$!
        started+=("$pid")
        if ((i < $(count 2 5))); then
          sleep "$(random_time "$run_us")"
          kill -KILL "$pid" 2>/dev/null || true
        fi
        code=0
        wait "$pid" 2>/dev/null || code=$?
        if grep -q 'continues the unfinished run' err; then continued=$((continued + 1)); fi
        if [[ $code -eq 0 ]]; then break; fi
        [ "$code" -eq 137 ] || fail "ended with $code: $(cat err)"
        killed=$((killed + 1))
      done
      for file in want/*; do
        unpacked "$file" >left
        unpacked "${file#want/}" | cmp - left || fail "$file of ${command[*]}"
      done
      [[ $(find . -name '*.cut') == "" ]] || fail "files are left: $(ls)"
    done
  done
  echo "# $killed kills, $continued runs continued" >&3
  [ "$killed" -ge "$wanted" ]
  [ "$continued" -gt 0 ]
}

dedup=(dedup --filter exact --state s)

@test "a compressed file that grew by a member is read on, and one that was replaced is noticed" {
  for kind in gz zst; do
    rm -f s s.* out*
    seq 1 1000 | pack $kind >log.$kind
    sluice "${dedup[@]}" --stats none log.$kind -o out
    sluice "${dedup[@]}" log.$kind -o out 2>err
    grep -q "nothing left to do" err
    { echo new && echo 1000; } | pack $kind >>log.$kind
    sluice "${dedup[@]}" log.$kind -o out 2>err
    grep -q "reads on after the last run: 'log.$kind'" err
    cmp out <(seq 1 1000 && echo new)
    # Renamed, it is recognized by its contents.
    mv log.$kind log.1.$kind
    echo newer | pack $kind >log.$kind
    sluice "${dedup[@]}" --stats json log.1.$kind log.$kind -o out 2>err
    [ "$(stat_of .records)" = 1 ]
    [ "$(tail -n 1 out)" = newer ]
    # Replaced, it is read from its beginning.
    seq 2000 3000 | pack $kind >log.$kind
    sluice "${dedup[@]}" log.$kind -o out 2>err
    grep -q "is not the file that was read" err
    [ "$(wc -l <out)" -eq $((1002 + 1001)) ]
    # The same bytes, read as they are, are other records.
    before=$(wc -c <out)
    sluice "${dedup[@]}" --binary --stats json log.$kind -o out 2>err
    tail -c "+$((before + 1))" out | cmp - log.$kind
  done
}

@test "a record that a member ended in is judged again when the next one continues it" {
  printf 'a\nb' | gzip >log.gz
  sluice "${dedup[@]}" --stats none log.gz -o out
  holds out 'a\nb'
  printf 'c\nd\n' | gzip >>log.gz
  sluice "${dedup[@]}" log.gz -o out 2>err
  grep -q "judged again" err
  holds out 'a\nb\nbc\nd\n'
  printf 'e' | gzip >>log.gz
  sluice "${dedup[@]}" --stats none log.gz -o out
  printf '\nf\n' | gzip >>log.gz
  sluice "${dedup[@]}" --stats none log.gz -o out
  holds out 'a\nb\nbc\nd\ne\nf\n'
}

@test "a log that is compressed when it is rotated is read on, and not delivered again" {
  for kind in gz zst; do
    rm -f s s.* out* app.log*
    seq 1 20000 >app.log
    sluice "${dedup[@]}" --stats none --window 100 app.log -o out
    # It grows, is rotated and compressed before the next run.
    seq 20001 20010 >>app.log
    pack $kind <app.log >app.log.1.$kind
    seq 30001 30005 >app.log
    sluice "${dedup[@]}" --window 100 app.log.1.$kind app.log -o out 2>err
    grep -q "'app.log.1.$kind' has the contents of 'app.log'" err
    cmp out <(seq 1 20010 && seq 30001 30005)
    # Once more: now both are known, by their new names, too.
    mv app.log.1.$kind app.log.2.$kind
    pack $kind <app.log >app.log.1.$kind
    seq 40001 40005 >app.log
    sluice "${dedup[@]}" --window 100 app.log.2.$kind app.log.1.$kind app.log -o out 2>err
    cmp out <(seq 1 20010 && seq 30001 30005 && seq 40001 40005)
    # Another file may begin with the same records: it is read from its beginning.
    rm app.log
    { seq 40001 40005 && echo more; } | pack $kind >app.log.0.$kind
    sluice "${dedup[@]}" --window 100 app.log.0.$kind -o out 2>err
    ! grep -q "has the contents of" err
  done
}

@test "outputs that are compressed are sound when they are empty, continued, cut or renamed" {
  for kind in gz zst; do
    printf 'id,text\n1,a\n' >in.csv
    rm -f s s.* out* twice*
    sluice "${dedup[@]}" --stats none --csv --key id in.csv -o out.$kind --duplicates twice.$kind
    [ "$(unpacked out.$kind)" = $'id,text\n1,a' ]
    [ "$(unpacked twice.$kind)" = "id,text" ]
    printf '2,b' >>in.csv
    sluice "${dedup[@]}" --stats none --csv --key id in.csv -o out.$kind --duplicates twice.$kind
    printf '\n2,c\n3,d\n' >>in.csv
    sluice "${dedup[@]}" --stats none --csv --key id in.csv -o out.$kind --duplicates twice.$kind
    [ "$(unpacked out.$kind)" = $'id,text\n1,a\n2,b\n3,d' ]
    [ "$(unpacked twice.$kind)" = $'id,text\n2,c' ]
    # Other columns are refused.
    printf 'id,other\n4,a\n' >other.csv
    refused 2 "${dedup[@]}" --stats none --csv --key id other.csv -o out.$kind --duplicates twice.$kind
    says "has the header 'id,text'"
    # What others appended is cut off, and kept unpacked if it can be.
    echo appended | pack $kind >>out.$kind
    printf '5,e\n' >>in.csv
    sluice "${dedup[@]}" --csv --key id in.csv -o out.$kind --duplicates twice.$kind 2>err
    holds out.$kind.cut 'appended\n'
    echo plain >>out.$kind
    printf '6,f\n' >>in.csv
    sluice "${dedup[@]}" --csv --key id in.csv -o out.$kind --duplicates twice.$kind 2>err
    holds out.$kind.cut 'appended\nplain\n'
    [ "$(unpacked out.$kind | tail -n 2)" = $'5,e\n6,f' ]
    # Under a name that says something else.
    mv out.$kind out.csv
    refused 2 "${dedup[@]}" --stats none --csv --key id in.csv -o out.csv --duplicates twice.$kind
    says "compressed with" "not compressed" "its old name"
    sluice dedup --stats none </dev/null -o empty.$kind
    [ "$(unpacked empty.$kind | wc -c)" -eq 0 ]
    # An empty one gets its header when there is one.
    rm -f e e.*
    : >empty.csv
    sluice dedup --filter exact --state e --stats none --csv --key id empty.csv -o headed.$kind
    cat in.csv >empty.csv
    sluice dedup --filter exact --state e --stats none --csv --key id empty.csv -o headed.$kind
    [ "$(unpacked headed.$kind | head -n 1)" = "id,text" ]
    rm headed.$kind
  done
}

@test "the window of a zstd file and the compression of an output count in --memory" {
  grep -qE "__[at]san_init" "$SLUICE" && skip "the sanitizer takes memory of its own"
  seq 1 300000 >plain
  # Of standard input, zstd does not know the size, so it takes the whole window.
  zstd --quiet -19 <plain >wide.zst
  zstd --quiet -1 --long=27 <plain >wider.zst
  zstd --quiet -1 <plain >narrow.zst
  gzip --keep plain
  peak_below() {
    sluice dedup --memory "$1" --stats json "${@:2}" 2>err >/dev/null
    [ "$(stat_of .memory_bytes)" -le $((${1%MiB} << 20)) ] || fail "$*: $(stat_of .memory_bytes)"
    ! grep -q "more than --memory" err
  }
  for file in plain plain.gz narrow.zst wide.zst; do
    peak_below 64MiB "$file"
    peak_below 64MiB "$file" -o out.gz
    peak_below 64MiB "$file" -o out.zst --duplicates twice.zst
  done
  # A pipe cannot be looked at before: an eighth of the budget is kept free.
  run -1 --separate-stderr sluice dedup --stats none --memory 40MiB <(cat wide.zst)
  says "needs a zstd window of 8 MiB (frame 1, " "than the 2 MiB that --memory has room for: give --memory 77MiB or more"
  peak_below 77MiB <(cat wide.zst)
  # Frames after the first, of a file and of a pipe.
  cat narrow.zst wide.zst >later.zst
  cat narrow.zst wider.zst >latest.zst
  peak_below 40MiB later.zst
  peak_below 77MiB <(cat later.zst)
  run -1 --separate-stderr sluice dedup --stats none --memory 64MiB <(cat later.zst)
  says "(frame 2, near compressed byte" "give --memory 77MiB or more"
  for file in wider.zst latest.zst; do
    sluice dedup --stats none --filter exact "$file" | cmp - plain
    sluice dedup --stats none --filter exact <(cat "$file") | cmp - plain
    # Under this seed no line is lost.
    sluice dedup --stats none --seed 1 --memory 200MiB "$file" | cmp - plain
  done
  # One that leaves nothing for the filter: with the least that does.
  run -2 --separate-stderr sluice dedup --memory 20MiB latest.zst
  says "--memory 20MiB is too little for 'latest.zst': frame 2 of it needs a zstd window of 128 MiB" "Give 142.75MiB or more"
  sluice dedup --stats none --memory 142.75MiB --window 10 latest.zst >/dev/null
  # A filter of a given size leaves the rest.
  given=(--expect 300k --fpr 1e-6 --seed 1)
  run -1 --separate-stderr sluice dedup --stats none --memory 77MiB "${given[@]}" <(cat latest.zst)
  least=$(sed -nE 's/.*give --memory ([^ ]+) or more.*/\1/p' <<<"$stderr")
  [ "$least" = 143MiB ]
  sluice dedup --stats none --memory "$least" "${given[@]}" <(cat latest.zst) | cmp - plain
  # So it is with count.
  run -2 --separate-stderr sluice count --memory 21MiB later.zst
  says "frame 2 of it needs a zstd window of 8 MiB"
  sluice count --memory 30MiB later.zst >/dev/null
  run -1 --separate-stderr sluice count --memory 30MiB <(cat later.zst)
  says "give --memory 77MiB or more"
  sluice count latest.zst >/dev/null
  # A state keeps the memory that it was planned with, whatever is compressed.
  sluice dedup --stats none --memory 40MiB --seed 1 --state a wide.zst -o a.out
  sluice dedup --stats none --memory 40MiB --state a plain -o a.out
  sluice dedup --stats none --memory 40MiB --seed 1 --state b plain -o b.out
  refused 2 dedup --stats none --memory 40MiB --state b wide.zst -o b.out
  says "without room" "--memory 40MiB" zstdcat
  # A pipe may be plain.
  sluice dedup --stats none --memory 40MiB --state b <(cat plain) -o b.out
  run -1 --separate-stderr sluice dedup --stats none --memory 40MiB --state b <(cat wide.zst) -o b.out
  says "512 KiB" "start another state with --memory 77MiB or more"
  sluice dedup --stats none --memory 40MiB --state a <(cat wide.zst) -o a.out
  cmp a.out b.out
}

@test "an output whose name only seems to say that it is compressed: a warning" {
  local name
  for name in O.GZ o.zstd; do
    seq 3 | sluice dedup --stats none -o "$name" 2>err
    seq 3 | cmp - "$name"
    grep -qF "warning: '$name' is written as plain text" err
    sluice generate lines --records 3 --output "$name" 2>err
    grep -qF "warning: '$name' is written as plain text" err
  done
  seq 3 | sluice dedup --stats none -o o.gz 2>err
  run ! grep -q warning err
}
