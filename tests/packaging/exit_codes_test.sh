#!/usr/bin/env bash
# --help, the man page and docs/cli.md name the same exit codes.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"

numbers() { grep -oE '\b[0-9]+\b' | sort -nu | xargs; }

# help_codes COMMAND: those of the sentence that ends its help.
help_codes() { "$SLUICE" "$1" --help | sed -n '/^Exit codes: /,$p' | numbers; }

in_docs=$(sed -n '/^| exit code /,/^$/p' "$SOURCE/docs/cli.md" | cut -d '|' -f 2 | numbers)
in_man=$(sed -n '/^\.SH EXIT STATUS/,/^\.PP/p' "$SOURCE/apps/cli/sluice.1" | grep -A1 -x .TP | numbers)
same "the exit codes that docs/cli.md lists" "0 1 2 129 130 143" "$in_docs"
same "the man page has other exit codes than docs/cli.md" "$in_docs" "$in_man"
same "dedup --help has other exit codes than docs/cli.md" "$in_docs" "$(help_codes dedup)"
same "plan --help has other exit codes than docs/cli.md" \
  "$(sed -n '/^## sluice plan/,/^## sluice model/p' "$SOURCE/docs/cli.md" |
    sed -n '/Exit codes: /,/^$/p' | sed 's/.*Exit codes: //' | numbers)" "$(help_codes plan)"
finish
