#!/usr/bin/env bash
# A stream that does not end by itself: what is judged is written whenever the input pauses, so that
# the reader behind the pipe waits for nothing.
set -euo pipefail

events() {
  for event in 'web 17 login' 'web 18 login' 'app 17 login' 'web 17 login'; do
    echo "$event"
    sleep 0.1
  done
}

# Fields 1 and 2 make the key: the same user on another device is another event.
events | sluice dedup --key 1,2 --stats none | while read -r event; do echo "new: $event"; done
