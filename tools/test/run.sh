#!/bin/bash
# run.sh - builds with sanitizers and runs the test suites
#
#   tools/test/run.sh [lint|conf|unit|integ|sdk|probes|run|fuzz|rootfs]...      (none: all but rootfs)
#
# The last line is "N passed, N failed", the sum over all suites; the exit status is 0 only when nothing
# failed. A sanitizer report of any process is a failure of the suite that it appeared in: leaks and
# undefined behaviour do not change an exit status by themselves.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh

suites=${*:-lint conf unit integ sdk probes run fuzz}
for s in $suites; do
	case $s in
	lint | conf | unit | integ | sdk | probes | run | fuzz | rootfs) ;;
	*) die "no such suite: $s (there are: lint conf unit integ sdk probes run fuzz rootfs)" ;;
	esac
done

tools/deps.sh build run test || exit 1

passed=0 failed=0
# Children drop to another user, and a checkout may be under a home that only root can enter.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/otari-test.XXXXXX") || exit 1
chmod 711 "$tmp"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' HUP INT TERM

build() { make_ BUILD=asan "$@"; }

criterion() { # NAME PROGRAM [ARG]...: runs it and turns its synthesis into our closing line
	local log=$tmp/criterion.log rc=0
	"${@:2}" >"$log" 2>&1 || rc=$?
	if grep -q Synthesis "$log"; then
		sed '/\[====\] /d; /Criterion v[0-9]/d' "$log"
	else
		cat "$log"
	fi
	sed 's/\x1b\[[0-9;]*m//g' "$log" | awk -v name="$1" -v rc=$rc '
		/Synthesis: Tested:/ { gsub(/[^0-9]+/, " "); n++; tested += $1; ok += $2 }
		END {
			bad = tested - ok
			# Status 1 with all passing: a test logged a warning. Sanitizer reports are looked for apart.
			if (n == 0 || tested == 0 || (rc > 1 && bad == 0)) {
				print name ": ended with status " rc " before its tests did"; bad++
			}
			print ok + 0 " passed, " bad " failed"; exit bad > 0
		}'
}

suite_lint() { tools/lint/run.sh; }
suite_conf() {
	build "$OUT/otari" || return 1
	if "$OUT/otari" -t -c otari.conf; then echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; fi
}
suite_unit() { build unit-bin stress-objs && criterion unit "$OUT/unit" --jobs "$(nproc)"; }
suite_integ() { build integ-bin && criterion integ "$OUT/integ" --jobs "${OTARI_INTEG_JOBS:-2}"; }
suite_sdk() { build integ-bin && tools/test/sdk.sh "$OUT"; }
suite_probes() { build "$OUT/probes" "$OUT/otari-init" && "$OUT/probes"; }
suite_rootfs() { build "$OUT/probes" "$OUT/otari-init" && tools/rootfs/test.sh "$OUT"; }
suite_run() { tools/test/printed.sh "${OUT##*/}"; }
suite_fuzz() { tools/test/fuzz.sh replay; }

run_suite() {
	local s=$1 log=$tmp/$1.log began rc p f reports
	began=$(date +%s)
	export SAN_DIR=$tmp/san-$s
	mkdir -m 1777 "$SAN_DIR"
	export ASAN_OPTIONS=log_path=$SAN_DIR/asan:detect_stack_use_after_return=0:${OTARI_ASAN_OPTIONS:-}
	export UBSAN_OPTIONS=log_path=$SAN_DIR/ubsan:print_stacktrace=1
	export LSAN_OPTIONS=suppressions=$PWD/tools/test/lsan.supp:print_suppressions=0
	export OTARI_TEST_TMP=$tmp
	echo "== $s"
	{ "suite_$s" 2>&1; echo "$?" >"$tmp/rc"; } | tee "$log" | grep -v -E '^[0-9]+ passed, [0-9]+ failed$'
	rc=$(cat "$tmp/rc")
	read -r p f < <(sed -n -E 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log" | tail -n 1) || :
	[ -n "${p:-}" ] || { p=0 f=1; echo "$s: did not come to an end (status $rc)"; }
	[ "$rc" -eq 0 ] || [ "$f" -gt 0 ] || { f=1; echo "$s: status $rc"; }
	# What is only remarked (a thread that the leak check could not stop) is no report.
	reports=$(grep -rlE 'ERROR: |runtime error: ' "$SAN_DIR" | sort)
	if [ -n "$reports" ]; then
		local r
		for r in $reports; do
			echo "$s: sanitizer report ${r##*/}"
			head -n 60 "$r"
			f=$((f + 1))
		done
	fi
	passed=$((passed + p)) failed=$((failed + f))
	echo "== $s: $p ok, $f not ok, $(($(date +%s) - began)) s"
}

for s in $suites; do run_suite "$s"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
