#!/usr/bin/env bats
# What the same command reads of its inputs when it runs again: what is new, and nothing twice. Where it
# reads a file from its beginning, it says so. docs/resuming.md has the rules, resume.bats kills runs.
load helper

exact=(dedup --stats none --filter exact --state s -o out)
# The window is so short that what is read again is delivered again.
short=(dedup --stats none --filter exact --window 2 --state s -o out)

# unfinished ARG...: a run that ends in the middle of its input, at a limit on the size of files.
unfinished() {
  run -1 bash -c 'ulimit -f 500; exec "$SLUICE" "$@"' - "${exact[@]}" --checkpoint-every 1 "$@"
  [ "$(sluice inspect --json s | jq .unfinished.records)" -gt 0 ]
}

# runs WORDS ARG...: `sluice ARG...` succeeds and says WORDS; if they are empty, it says nothing.
runs() {
  local words=$1
  shift
  run -0 --separate-stderr sluice "$@"
  [[ -n $words || -z $stderr ]] || fail "it said: $stderr"
  says "$words"
}

@test "a table that ended within quotes, with a newline, is read on from the beginning of that record" {
  printf 'k,v\n2,y\n1,"abc\n' >in
  table=("${exact[@]}" --csv)
  runs "" "${table[@]}" in
  # Nothing came, so that nothing is judged again.
  printf 'k,v\n5,v\n' >other
  runs "" "${table[@]}" in other
  printf '2,z"\n3,w\n' >>in
  runs "'in'" "${table[@]}" in
  says "within quotes" "as a whole" "stays in the output"
  holds out 'k,v\n2,y\n1,"abc\n5,v\n1,"abc\n2,z"\n3,w\n'
  rm -f s s.* out
  printf 'k,v\n2,y\n1,"abc\n' >in
  runs "" "${table[@]}" -k k in
  printf '2,z"\n3,w\n' >>in
  runs "held back as a duplicate" "${table[@]}" -k k in
  # Without its end, the record had no key.
  holds out 'k,v\n2,y\n1,"abc\n1,"abc\n2,z"\n3,w\n'
  # An earlier input of an unfinished run, and a record longer than what is compared.
  rm -f s s.* out
  { printf '1,"' && seq 1 20000; } >in
  lines_of 30000 >long
  unfinished --csv --no-header in long
  printf '2,z"\n3,w\n' >>in
  runs "within quotes" "${table[@]}" --no-header in long
  # After the record that had no end, there is a newline more.
  sort -u in long >want
  sed '/^$/d' out | sort -u | cmp - want
  [ "$(grep -c '^2,z"$' out)" -eq 1 ]
  [ "$(grep -c '^1,"1$' out)" -eq 2 ]
}

@test "an input that was edited in its place is read again, whoever saved the state since" {
  seq 100000 130000 >a
  seq 1 5 >b
  runs "" "${exact[@]}" a b
  runs "" "${exact[@]}" a b
  sleep 0.1
  printf X | dd of=a bs=1 conv=notrunc status=none
  sleep 0.1
  echo 6 >>b
  runs "" "${exact[@]}" b
  cp s copy
  runs "'a' was written to" "${exact[@]}" a b
  [ "$(tail -n 1 out)" = X00000 ]
  runs "" "${exact[@]}" a b
  cp copy s
  head -n -1 out >out.x
  mv out.x out
  runs "'a' was written to" "${exact[@]}" a b
  [ "$(tail -n 1 out)" = X00000 ]
}

@test "an input that was edited while the run read a later one is read again" {
  seq 100000 130000 >a
  mkfifo feed
  exec 7<>feed
  start "${exact[@]}" --checkpoint-every 1 a feed
  echo one >&7
  delivered() { [[ $(tail -n 1 out) == one ]]; }
  eventually delivered
  printf X | dd of=a bs=1 conv=notrunc status=none
  sleep 0.1
  kill -INT "$pid"
  ends_with 130
  exec 7>&-
  runs "'a' was written to" "${exact[@]}" a <(echo two)
  [ "$(tail -n 2 out | xargs)" = "X00000 two" ]
  # The same in a run that did not end.
  rm -f s s.* out
  lines_of 30000 >long
  seq -f '1%063.0f' 2000 >a
  cp a before
  unfinished a long
  [ "$(sluice inspect --json s | jq .unfinished.current)" -eq 1 ]
  printf X | dd of=a bs=1 conv=notrunc status=none
  runs "'a' was written to" "${exact[@]}" a long
  sort -u before a long >want
  sort out | cmp - want
}

@test "a rotated input that was not among the last inputs is read with a warning" {
  seq 1 5 >a
  seq 11 15 >b
  runs "" "${short[@]}" a b
  echo 16 >>b
  runs "" "${short[@]}" b
  sed -i s/2/two/ a
  runs "'a' is not the file" "${short[@]}" a b
  says "from its beginning"
  printf '1\ntwo\n3\n4\n5\n' >want
  tail -n 5 out | cmp - want
}

@test "a copy of an input that was read is read from its beginning, with a warning" {
  seq 1 50 >log
  runs "" "${short[@]}" log
  # As logrotate does with copytruncate.
  cp log log.1
  seq 1001 1005 >log
  cp s begin
  runs "'log' is not the file" "${short[@]}" log
  says "'log.1' seems to be a copy"
  cp begin s
  seq 1 50 >out
  runs "'log.1' seems to be a copy of 'log'" "${short[@]}" log.1 log
  says "from its beginning" "may be delivered again" "mv"
  { seq 1 50 && seq 1 50 && seq 1001 1005; } | cmp - out
  runs "" "${short[@]}" log.1 log
  # Another file is not a copy, and without a window there is nothing to warn of.
  seq 2001 2050 >third
  runs "" "${short[@]}" third
  rm -f s s.* out
  runs "" "${exact[@]}" log.1
  cp log.1 log.2
  runs "" "${exact[@]}" log.2
  seq 1 50 | cmp - out
}

@test "an unfinished run takes further files, which are read from their beginning" {
  lines_of 30000 >in.1
  seq 5 >in.0
  unfinished in.0 in.1
  seq 101 105 >in.00
  seq 201 205 >in.2
  run -0 --separate-stderr sluice dedup --filter exact --state s -o out in.0 in.00 in.1 in.2
  says "continues the unfinished run" "'in.1' from byte"
  awk '!seen[$0]++' in.0 in.1 in.00 in.2 | sort >want
  sort out | cmp - want
  tail -n 5 out | cmp - in.2
  # All of them were read.
  runs "" "${exact[@]}" in.0 in.00 in.1 in.2
  sort out | cmp - want
  # What another run had read is not read again.
  rm -f s s.* out
  runs "" "${exact[@]}" in.0
  lines_of 30000 3 >in.1
  unfinished in.1
  echo 6 >>in.0
  run -0 --separate-stderr sluice dedup --filter exact --state s -o out in.0 in.1
  says "'in.0' from byte 10 of 12"
  # Fewer inputs, another order, and a pipe more are refused.
  rm -f s s.* out
  unfinished in.0 in.1
  for inputs in in.0 in.1 "in.1 in.0" "in.0 in.2" "in.0 in.1 -"; do
    # shellcheck disable=SC2086
    refused 2 "${exact[@]}" $inputs <<<x
    says "same inputs" --abandon
  done
}

@test "an unfinished run whose log was rotated takes the old and the new log" {
  lines_of 30000 >app.log
  unfinished app.log
  mv app.log app.log.1
  echo new >app.log
  runs "" "${exact[@]}" app.log.1 app.log
  { lines_of 30000 | awk '!seen[$0]++' && echo new; } | cmp - out
  [ ! -e out.cut ]
}

@test "another command says that it reads from the beginning what the state has read" {
  seq 1 5 >a
  seq 1 5 >b
  runs "" "${short[@]}" a
  runs "warning: 'a' was read before, up to byte 10" "${short[@]}" a --duplicates twice
  says "other outputs" "from its beginning" "delivered again"
  runs "with other flags" "${short[@]}" a --duplicates twice --invert
  runs "" "${short[@]}" a --duplicates twice --invert --abandon
  rm -f s s.* out
  runs "" "${exact[@]}" a
  run -0 --separate-stderr sluice dedup --filter exact --state s a -o elsewhere
  says "'a' was read before" "other outputs"
  [[ $stderr != *warning* ]]
  sluice "${exact[@]}" a b
  run -0 --separate-stderr sluice dedup --filter exact --state s b a -o elsewhere
  says "'b' was read before, up to byte 10, with 1 other input" "from their beginnings"
  seq 6 9 >b
  run -0 --separate-stderr sluice dedup --filter exact --state s b -o third
  [[ $stderr != *"read before"* ]]
}

@test "an output is never named as the input that is missing" {
  seq 1 60000 >in0
  cp in0 kept
  unfinished in0
  echo other >in0
  size=$(sluice inspect --json s | jq '.outputs[0].bytes')
  [ "$(sluice inspect --json s | jq '.unfinished.inputs[0].offset')" -eq "$size" ]
  rm kept
  refused 2 "${exact[@]}" in0
  says "'in0' is not the file" "Give it that file again"
  seq 1 60000 >in0
  sluice "${exact[@]}" in0
  seq 7 >in0
  runs "'in0' is not the file" "${exact[@]}" in0
  [[ $stderr != *"'out'"* ]]
}

@test "a rotated file whose successor begins with all that was read of it" {
  printf 'id,m\n' >log
  local table=("${exact[@]}" --csv --key id)
  runs "" "${table[@]}" log
  printf '1,a\n' >>log
  mv log log.1
  printf 'id,m\n2,b\n' >log
  runs "warning" "${table[@]}" log
  says "input 'log' is not the file that was read up to byte 5: it begins with the same bytes, but is another file"
  says "'log.1' is the file that was read: if it has grown since, give it as an input, too"
  runs "" "${table[@]}" log.1 log
  holds out 'id,m\n2,b\n1,a\n'
}

@test "an unfinished run is not continued with a file that begins as the rotated one did" {
  lines_of 30000 >in.1
  unfinished in.1
  mv in.1 in.2
  cp in.2 in.1
  refused 2 "${exact[@]}" in.1
  says "it begins with the same bytes, but is another file"
  says "'in.2' is that file"
}
