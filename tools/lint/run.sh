#!/bin/bash
# run.sh - every house rule that a script can check; one line a rule, then "N passed, N failed"
set -u
cd "$(dirname "$0")/../.." || exit 1
ok=0 bad=0
for rule in layers headers banned length words behaviour format; do
	if out=$(tools/lint/$rule.sh 2>&1); then
		ok=$((ok + 1)) && echo "ok $rule"
	else
		bad=$((bad + 1)) && echo "FAIL $rule" && printf '%s\n' "$out"
	fi
done
echo "$ok passed, $bad failed"
[ "$bad" -eq 0 ]
