#!/bin/bash
# format.sh - C files that clang-format would change
. "$(dirname "$0")/lib.sh"
command -v clang-format >/dev/null || { echo "clang-format is missing"; exit 1; }
bad=0
while IFS= read -r f; do
	n=$(clang-format --dry-run "$f" 2>&1 | grep -c 'warning: code should be clang-formatted')
	[ "$n" -eq 0 ] || { echo "$f: $n places differ from clang-format (make format)"; bad=1; }
done < <(sources '*.c' '*.h')
exit $bad
