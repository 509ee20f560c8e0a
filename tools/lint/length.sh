#!/bin/bash
# length.sh - a C file has about 500 lines and one job: more than 550 need a line in length.allow
. "$(dirname "$0")/lib.sh"
long=$(sources '*.c' '*.h' | xargs -d '\n' wc -l | awk '$1 > 550 && $2 != "total" { print $2, $1 }')
allowed=$(sed '/^#/d; /^ *$/d; s/ .*//' tools/lint/length.allow)
bad=0
while read -r f n; do
	[ -z "$f" ] || grep -q -x -F "$f" <<<"$allowed" || { echo "$f: $n lines (500 and a little)"; bad=1; }
done <<<"$long"
for f in $allowed; do
	grep -q "^$f " <<<"$long" || { echo "tools/lint/length.allow: $f needs no exception"; bad=1; }
done
exit $bad
