#!/usr/bin/env bash
# The man page renders without a warning and is of this version.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"

page=$SOURCE/apps/cli/sluice.1
warnings=$(groff -man -ww -Tutf8 -P-cbu -rLL=78n "$page" 2>&1 >"$scratch/page")
[[ -z $warnings ]] || complain "groff complains: $warnings"
grep -q 'EXIT STATUS' "$scratch/page" || complain "the page has no section on exit codes"
version=$("$SLUICE" --version | sed -n 's/^sluice //p')
grep -qF "\"Sluice $version\"" "$page" || complain "the page is not of version $version"
finish
