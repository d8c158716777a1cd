#!/usr/bin/env bash
# tests/redis/run.sh TOPIC [ARG...]: runs tests/redis/test_TOPIC.py with real servers; ARGs are pytest's. The topic
# `speed` is no test, but measures: see speed.py.
# SLUICE_MODULE names the module, if there is one. What it downloads stays in build/. Exits with 77, and one
# sentence, if that cannot be downloaded.
set -euo pipefail
cd "$(dirname "$0")/../.."
topic=${1:?name a topic: tests/redis/test_TOPIC.py}
shift
# shellcheck source=tools/venv.sh
. tools/venv.sh
export SLUICE_SERVERS=$PWD/build/servers
mkdir -p build/redis
# One at a time: tests that run side by side need the same.
exec 8>build/redis/.lock
flock 8

for name in redis valkey; do
  status=0
  said=$(tools/servers "$name" 2>&1 >/dev/null) || status=$?
  case $status in
    0) ;;
    1)
      echo "Skipped: $said"
      exit 77
      ;;
    *)
      echo "$said" >&2
      exit 1
      ;;
  esac
done
(venv build/redis/tests tests/redis/requirements.txt) >build/redis/venv.log || {
  status=$?
  [[ $status -ne 77 ]] || echo "Skipped: PyPI cannot be reached"
  exit "$status"
}

# node_modules: the clients of package-lock.json in build/redis/node, unless they are there.
node_modules() {
  local folder=build/redis/node
  if ! { command -v node && command -v npm; } >/dev/null; then
    echo "Skipped: node or npm is not installed"
    exit 77
  fi
  if ! cmp -s tests/redis/node/package-lock.json "$folder/installed"; then
    rm -rf "$folder"
    mkdir -p "$folder"
    cp tests/redis/node/{package.json,package-lock.json,.npmrc} "$folder/"
    npm --prefix "$folder" ci --ignore-scripts --fetch-retries 1 >"$folder/log" 2>&1 || {
      if grep -qE 'ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|network' "$folder/log"; then
        echo "Skipped: the npm registry cannot be reached"
        exit 77
      fi
      cat "$folder/log" >&2
      exit 1
    }
    cp tests/redis/node/package-lock.json "$folder/installed"
  fi
  export SLUICE_NODE_MODULES=$PWD/$folder/node_modules
}
case $topic in bf | node*) node_modules ;; esac
exec 8>&-
python=build/redis/tests/bin/python
[[ $topic != speed ]] || exec "$python" tests/redis/speed.py "$@"
# Itself, not a child: whoever ends this ends the tests, and with them their servers.
exec "$python" -m pytest -q -p no:cacheprovider "tests/redis/test_$topic.py" "$@"
