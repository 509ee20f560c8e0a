#!/bin/bash
# printed.sh - what `make run` prints works: its three requests, pasted, against the demo model; `make demo`
#
#   tools/test/printed.sh [BUILD]
#
# Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
dir=$(mktemp -d "${OTARI_TEST_TMP:-/tmp}/printed.XXXXXX") || exit 1
chmod 711 "$dir"
run_pid=
finish() {
	[ -z "$run_pid" ] || { kill -TERM "$run_pid" && wait "$run_pid"; } 2>/dev/null
	rm -rf "$dir"
}
trap finish EXIT
ok=0 bad=0
check() { # WHAT COMMAND...
	if "${@:2}"; then
		ok=$((ok + 1)) && echo "ok $1"
	else
		bad=$((bad + 1)) && echo "FAIL $1"
	fi
}
has() { grep -q -e "$1" "$2" || { tail -c 2000 "$2"; return 1; }; }
all_gone() {
	local p
	for p; do ! kill -0 "$p" 2>/dev/null || return 1; done
}
is_picture() {
	[ "$(head -c 4 "$1" | od -An -tx1 | tr -d ' ')" = 89504e47 ] || grep -q '^<svg' "$1"
}

# No provider's key, whatever the caller has.
unset "${!ANTHROPIC_@}" "${!OPENAI_@}" "${!MISTRAL_@}" "${!GEMINI_@}" "${!DEEPSEEK_@}" "${!GROQ_@}" "${!OPENROUTER_@}" "${!XAI_@}"
export RUN_STATE=$dir/state OTARI_PORT=$((21000 + RANDOM % 9000))
tools/dev-run.sh "${1:-asan}" >"$dir/out" 2>&1 &
run_pid=$!
for _ in $(seq 600); do
	grep -q '^Ctrl-C stops it' "$dir/out" && break
	kill -0 "$run_pid" 2>/dev/null || break
	sleep 0.2
done
if ! grep -q '^Ctrl-C stops it' "$dir/out"; then
	cat "$dir/out"
	echo "0 passed, 1 failed"
	exit 1
fi
sed -n '/^OTARI=/,/^Ctrl-C/p' "$dir/out" | sed '$d' >"$dir/pasted"
for _ in $(seq 200); do
	curl -s "http://127.0.0.1:$OTARI_PORT/health" | grep -q '"sandbox":"testing"' || break
	sleep 0.1
done
mkdir "$dir/tmp"
TMPDIR=$dir/tmp timeout 120 bash "$dir/pasted" >"$dir/answers" 2>&1
check "a text" has '"object":"chat.completion".*"finish_reason":"stop"' "$dir/answers"
if curl -s "http://127.0.0.1:$OTARI_PORT/health" | grep -q '"sandbox":"ready"' || [[ ${OTARI_TEST_REQUIRE:-} == *sandbox* ]]; then
	check "a computation" has '"stdout":"5117\\n' "$dir/answers"
	check "a chart" has '"code_execution_output","file_id"' "$dir/answers"
	check "its download" is_picture "$(echo "$dir"/tmp/*/chart)"
else
	echo "SKIPPED sandbox"
fi
master=$(cat "$RUN_STATE/otari.pid")
pids="$master $(pgrep -P "$master" | tr '\n' ' ')"
kill -TERM "$run_pid"
wait "$run_pid"
run_pid=
check "it stops" has '\(msg":"\| \)stopped' "$dir/out"
check "nothing is left" all_gone $pids

# --- make demo: a gateway of its own ---------------------------------------------------------------------
unset RUN_STATE OTARI_PORT
OTARI_TEST_TMP=$dir/tmp ${MAKE:-make} --no-print-directory BUILD="${1:-asan}" demo >"$dir/demo" 2>&1
status=$?
if [ "$status" -eq 2 ] && grep -q '^The sandbox is not there' "$dir/demo" && [[ ${OTARI_TEST_REQUIRE:-} != *sandbox* ]]; then
	echo "SKIPPED sandbox"
else
	check "make demo: all ok" has '^[1-9][0-9]* ok, 0 not ok, 0 skipped$' "$dir/demo"
	check "make demo: its status" test "$status" -eq 0
fi
check "make demo leaves nothing" test -z "$(ls -d "$dir"/tmp/otari-demo.* 2>/dev/null)"
echo "$ok passed, $bad failed"
[ "$bad" -eq 0 ]
