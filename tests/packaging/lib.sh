#!/usr/bin/env bash
# Shared by the tests of this folder, which source it. Each gets SOURCE (the tree), BUILD (a build
# of it), SLUICE (the command) and CXX from CMake, and may write to $scratch.
set -euo pipefail
: "${SOURCE:?run these tests through ctest}" "${BUILD:?}" "${SLUICE:?}" "${CXX:?}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PATH=$(dirname "$SLUICE"):$PATH
export LC_ALL=C.UTF-8

failures=0
# complain MESSAGE: one failure; `finish` ends the test with all of them.
complain() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}
finish() { ((failures == 0)); }

# same WHAT EXPECTED ACTUAL
same() {
  if [[ $2 != "$3" ]]; then
    complain "$1"
    diff <(echo "$2") <(echo "$3") >&2 || true
  fi
}

# fenced LANGUAGE N FILE: the Nth block of that language in a Markdown file.
fenced() {
  awk -v open="\`\`\`$1" -v wanted="$2" '
    $0 == open { inside = ++seen == wanted; next }
    /^```/ { inside = 0 }
    inside' "$3"
}

# made_packages: the folder with the packages that ./dev package has made (PACKAGES), or makes them from
# $BUILD. The static command needs the sources of some libraries: with short counts it may be missing.
made_packages() {
  local -a parts=(deb source)
  if [[ -z ${PACKAGES:-} ]]; then
    PACKAGES=$scratch/packages
    if cmake --build "$BUILD" --target sluice_static -- --quiet >&2; then
      parts+=(static)
    elif [[ ${SLUICE_COUNTS:-full} == full ]]; then
      return 1
    else
      echo "The static command is not tested, because it could not be made: see above." >&2
    fi
    "$SOURCE/packaging/make" "$BUILD" "$PACKAGES" "${parts[@]}"
  fi
  echo "$PACKAGES"
}
