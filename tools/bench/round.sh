#!/bin/bash
# round.sh - what a round of code adds to the model's time, and the whole journey of a file
#
#   tools/bench/round.sh [N]           (300)     MODEL_MS=20 WORKERS=1
#
# tools/bench/round.c is client and provider in one; the model's time is what it takes by its own clock. Prints the machine,
# the load and Markdown tables; also in build/round.md.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
n=${1:-300} model_ms=${MODEL_MS:-20} workers=${WORKERS:-1}
out=$PWD/build/release
make_ BUILD=release all build/release/bench-round || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/otari-bench.XXXXXX") || exit 1
pids=()
finish() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
	wait 2>/dev/null
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM
. tools/bench/daemon.sh

coproc BENCH { "$out/bench-round" "$n" "$model_ms"; }
bench_pid=$BENCH_PID
pids+=("$bench_pid")
exec {from}<&"${BENCH[0]}" {to}>&"${BENCH[1]}"
read -r fake_port <&"$from" || exit 1
admin_listen=127.0.0.1:0
start_otari || exit 1
admin_port=$(until_text "$dir/otari.log" '"listening".*"admin_port":([0-9]+)') || exit 1
state=$(wait_sandbox)
[ "$state" = ready ] || die "the sandbox is not ready: $state"
load() { cut -d ' ' -f 1-3 /proc/loadavg; }
{
	echo "$(date -u +%F), $(nproc) processors ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), $(uname -sr)," \
		"$workers worker(s), the model takes $model_ms ms for an answer. Load average before: $(load)."
	echo
	echo "$otari_port $admin_port $key" >&"$to"
	cat <&"$from"
	echo
	echo "Load average after: $(load)."
} | tee build/round.md
wait "$bench_pid"
