#!/bin/bash
# fuzz.sh - the fuzz targets: replay of the committed corpus, or minutes of fuzzing
#
#   tools/test/fuzz.sh replay | minutes N [TARGET]...
#
# What minutes of fuzzing find is kept in build/fuzz-corpus; a crash is written to build/fuzz-findings.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
mode=${1:-replay}
minutes=${2:-5}
tools/deps.sh build test || exit 1
make_ BUILD=fuzz fuzz-bins || exit 1
# The reports of a fuzz target are its exit status; they must be readable in the output.
unset ASAN_OPTIONS UBSAN_OPTIONS
ok=0 bad=0

targets=$(find build/fuzz/fuzz -maxdepth 1 -type f -executable 2>/dev/null | sort)
if [ "$mode" = minutes ] && [ $# -gt 2 ]; then
	targets=$(for t in "${@:3}"; do echo "build/fuzz/fuzz/$t"; done)
fi
count=$(printf '%s\n' "$targets" | grep -c .)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

for t in $targets; do
	name=$(basename "$t")
	corpus=tests/fuzz/corpus/${name#fuzz_}
	[ -d "$corpus" ] || corpus=
	if [ "$mode" = replay ]; then
		set -- -timeout=20
		if [ -n "$corpus" ]; then
			while IFS= read -r f; do set -- "$@" "$f"; done < <(find "$corpus" -type f | sort)
		else
			set -- "$@" -runs=200 -seed=1
		fi
		files=$(($# - 1))
	else
		mkdir -p "build/fuzz-corpus/$name" build/fuzz-findings
		set -- -max_total_time=$((minutes * 60 / count + 1)) -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
			"-artifact_prefix=build/fuzz-findings/$name-" "build/fuzz-corpus/$name" $corpus
		files=$(find $corpus "build/fuzz-corpus/$name" -type f | wc -l)
	fi
	if "$t" "$@" >"$log" 2>&1; then
		ok=$((ok + 1))
		echo "ok $name ($files inputs)$(sed -n 's/^stat::number_of_executed_units: */, runs: /p' "$log")"
	else
		bad=$((bad + 1))
		echo "FAIL $name"
		tail -n 60 "$log"
	fi
done
echo "$ok passed, $bad failed"
[ "$bad" -eq 0 ]
