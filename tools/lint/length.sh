#!/bin/bash
# length.sh - a C file has about 500 lines and one job: more than 550 need a line in length.allow
. "$(dirname "$0")/lib.sh"
bad=0
while IFS= read -r f; do
	n=$(wc -l <"$f")
	[ "$n" -le 550 ] || grep -q "^$f " tools/lint/length.allow || { echo "$f: $n lines (500 and a little)"; bad=1; }
done < <(sources '*.c' '*.h')
while read -r f _; do
	case $f in '' | '#'*) continue ;; esac
	[ -f "$f" ] && [ "$(wc -l <"$f")" -gt 550 ] || { echo "tools/lint/length.allow: $f needs no exception"; bad=1; }
done <tools/lint/length.allow
exit $bad
