#!/bin/bash
# format.sh - C files that clang-format would change
. "$(dirname "$0")/lib.sh"
command -v clang-format >/dev/null || { echo "clang-format is missing"; exit 1; }
found=$(sources '*.c' '*.h' | xargs -d '\n' -P "$(nproc)" -n 40 clang-format --dry-run 2>&1 |
	sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' | sort | uniq -c)
[ -z "$found" ] || {
	printf '%s\n' "$found" | sed 's/^ *\([0-9]*\) \(.*\)/\2: \1 places differ from clang-format (make format)/'
	exit 1
}
