#!/bin/bash
# stress.sh - builds the programs of tests/stress with the thread sanitizer and runs each
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
tools/deps.sh build test || exit 1
make_ BUILD=tsan stress-bins || exit 1
ok=0 bad=0
for t in $(find build/tsan/stress -maxdepth 1 -type f -executable 2>/dev/null | sort); do
	if TSAN_OPTIONS=halt_on_error=0:exitcode=66 timeout -k 10 "${STRESS_TIMEOUT_S:-300}" "$t"; then
		ok=$((ok + 1)) && echo "ok $(basename "$t")"
	else
		bad=$((bad + 1)) && echo "FAIL $(basename "$t")"
	fi
done
echo "$ok passed, $bad failed"
[ "$bad" -eq 0 ]
