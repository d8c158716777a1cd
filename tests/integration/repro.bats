#!/usr/bin/env bats
# sluice repro: the papers' experiments, ours beside theirs.
load helper

@test "a page, and data for each experiment; the same seed gives the same files" {
  for out in one two; do
    sluice repro koloniari --only fig1a --only table1 --scale 0.05 --no-plot --out $out >said 2>err
  done
  diff -r one two
  grep -q '^2 experiments: ' said
  grep -q '^### Table 1: ' one/reproduction.md
  head -n 1 one/koloniari/table1.csv | grep -qx 'tree,level,hits,accesses'
  [ "$(wc -l <one/koloniari/table1.csv)" -eq 5 ]
  [ "$(wc -l <err)" -eq 2 ]
  sluice repro koloniari --only fig1a --only table1 --scale 0.05 --no-plot --seed 2 --out three
  ! diff -q one/koloniari/table1.csv three/koloniari/table1.csv || fail "seeds make no difference"
}

@test "figures are SVG" {
  command -v gnuplot >/dev/null || skip "gnuplot is not installed"
  sluice repro koloniari --only fig1a --out out
  grep -q '<svg' out/koloniari/fig1a.svg
  grep -q 'failed sites (%)' out/koloniari/fig1a.svg
  grep -q '(koloniari/fig1a.svg)' out/reproduction.md
}

@test "a stream of one's own is run and not judged by the paper" {
  for i in $(seq 2000); do printf 'client%d\t/page%d\n' $((i % 7)) $((i * i % 311)); done >log
  sluice repro koloniari --only table1 --only fig5b --input log --no-plot --out out >said
  grep -q 'own input' out/reproduction.md
  # 311 is prime, so there are 156 squares; few of them are lost.
  awk -F, '$1 == "dense" { hits += $3 } END { exit hits < 1844 || hits > 1850 }' out/koloniari/table1.csv ||
    { cat out/koloniari/table1.csv; false; }
}

@test "parameters can be changed, and --list says which there are" {
  sluice repro koloniari --list >list
  grep -q '^  fig7c ' list
  grep -q 'k=4  hash functions' list
  sluice repro koloniari --only fig1b --set k=8 --no-plot --out out
  grep -q 'k 8' out/reproduction.md
  grep -q 'not judged' out/reproduction.md
}

@test "shares below one can be set, and what is out of range is said" {
  sluice repro dutta --only table2 --set distinct=0.5 --set bits=65536 --set streams=1 --scale 0.1 --no-plot --out out
  grep -q 'distinct 0.5' out/reproduction.md
  grep -q '^65536 bits at the paper' out/reproduction.md
  sluice repro guo --only fig10 --set fpr=0.001 --set a=0.7 --no-plot --out guo
  ! grep -q '| yes |' guo/reproduction.md || fail "the paper is held to other parameters"
  run -2 sluice repro dutta --only table2 --set distinct=1.5 --no-plot
  [[ ${lines[-1]} == *'distinct=1.5'*'give 1e-06 to 0.999'* ]]
  run -2 sluice repro shtul --only table3 --set k=3 --no-plot
  [ "${#lines[@]}" -eq 1 ]
}

@test "a figure is found by its own name" {
  sluice repro dautrich --only fig12 --scale 0.01 --set bits=4 --set a2=1024 --set senders=100 --no-plot --out out 2>err
  grep -qx 'fig12 of dautrich is in fig11, Figures 11 and 12' err
  grep -q '^| .*posterior error: w = 2^10, 4 bits per item' out/reproduction.md
  run -2 sluice repro dautrich --only fig99 --no-plot
  [[ ${lines[-1]} == *'fig7, fig8'* ]]
}

@test "what there is not is refused" {
  run -2 sluice repro newton
  run -2 sluice repro koloniari --only fig99 --no-plot
  run -2 sluice repro koloniari --set zeta=1 --no-plot
  run -2 sluice repro koloniari --scale 0 --no-plot
  run -2 sluice repro guo --input log --no-plot
  run -1 sluice repro koloniari --only table1 --input nowhere --no-plot
  touch file
  run -1 sluice repro koloniari --only fig1a --no-plot --out file/below
}
