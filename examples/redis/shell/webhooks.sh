#!/usr/bin/env bash
# Webhooks that are sent again and again are handled once. The ids are judged in batches: one round trip each.
# The window makes itself with the first batch, and expires when no webhook has come for a day.
#
# REDIS_CLI and REDIS_PORT name another client and port.
set -euo pipefail
cli() { "${REDIS_CLI:-redis-cli}" -p "${REDIS_PORT:-6379}" -e "$@"; }

# once ID...: prints the ids that were not seen in the last 24 hours.
once() {
  local answer
  local -a answers
  answer=$(cli SLUICE.INSERT webhooks WINDOW 24h ITEMS "$@")
  mapfile -t answers <<<"$answer"
  for id in "$@"; do
    case ${answers[0]} in
      1) echo "$id" ;;
      0) ;;
      # No memory for this one: the sender will send it again.
      *) echo "not judged: $id: ${answers[0]}" >&2 ;;
    esac
    answers=("${answers[@]:1}")
  done
}

echo "first batch:"
once evt_1 evt_2 evt_1
echo "second batch:"
once evt_2 evt_3
echo "handling evt_3 failed, so it is taken back, and sent again:"
cli SLUICE.FORGET webhooks evt_3 >/dev/null
once evt_1 evt_3
