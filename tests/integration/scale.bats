#!/usr/bin/env bats
# Many lines, against awk.
load helper

# loses_as_predicted ARG...: on ./input, of which ./want are the distinct lines.
loses_as_predicted() {
  sluice dedup --stats json --expect "$(count 150k 8M)" "$@" input >out 2>err
  # In order, without a duplicate, nothing of its own: what was wanted with some lines missing.
  lost=$(mawk -v out=out '
    BEGIN { more = (getline line < out) > 0 }
    more && $0 == line { more = (getline line < out) > 0; next }
    { ++lost }
    END { if (more) exit 1; print lost + 0 }' want)
  echo "lost $lost of $(wc -l <want)"
  # Losses are rare and independent: their number varies by its square root.
  stat_of "(.filter.predicted_fpr * $(wc -l <want)) as \$most | $lost <= \$most + 4 * (\$most | sqrt)" |
    grep -qx true
}

@test "many lines: exact equals awk, the default loses no more than predicted" {
  lines_of "$(count 200k 10M)" >input
  mawk '!seen[$0]++' input >want
  sluice dedup --stats none --filter exact input | cmp - want

  loses_as_predicted
  loses_as_predicted --fpr 1e-3
}
