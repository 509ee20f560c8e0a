#!/bin/bash
# attack.sh - what clients feel of the fast path while sandboxes misbehave
#
#   tools/bench/attack.sh [ROUNDS]     (3)     SECONDS_EACH=6 ATTACKERS=2 CONNECTIONS=4 WORKERS=2
#
# Each round measures plain chat requests (2 ms apart on each connection) beside each attack, and right before it with
# nothing beside them. An attack: ATTACKERS requests at a time whose code forks, takes memory, writes output or computes
# without end. Prints a Markdown table of medians over the rounds, ratios too; also in build/attack.md.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
rounds=${1:-3} seconds=${SECONDS_EACH:-6} attackers=${ATTACKERS:-2} connections=${CONNECTIONS:-4} workers=${WORKERS:-2}
out=$PWD/build/release
make_ BUILD=release all build/release/fake-provider || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/otari-attack.XXXXXX") || exit 1
pids=()
finish() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
	wait 2>/dev/null
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM
. tools/bench/daemon.sh
start_fake || exit 1
more_conf='sandbox_pool_size: 2'
start_otari || exit 1
[ "$(wait_sandbox)" = ready ] || die "the sandbox is not ready"

declare -A attacks=(
	[forks]='import os\nwhile True:\n    try: os.fork()\n    except OSError: pass'
	[memory]='a = []\nwhile True: a.append(bytearray(1 << 24))'
	[output]="import os\\nb = b'x' * (1 << 16)\\nwhile True: os.write(1, b)"
	[computing]='import os\nfor i in range(6): os.fork()\nwhile True: pass'
)
attack() { # NAME: one after the other, until killed
	trap 'kill $child 2>/dev/null; exit' TERM
	while :; do
		curl -s -o /dev/null --max-time "$((seconds + 2))" -H "Authorization: Bearer $BENCH_KEY" -H 'Content-Type: application/json' \
			-d "{\"model\":\"fake:tool\",\"max_tokens\":100,\"tools\":[{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}],\"messages\":[{\"role\":\"user\",\"content\":\"run: ${attacks[$1]//\"/\\\"}\"}]}" \
			"$otari/v1/messages" &
		child=$!
		wait $child
	done
}
measure() { # NAME
	local line
	line=$(BENCH_PAUSE_MS=2 BENCH_PATH=/v1/chat/completions \
		BENCH_BODY='{"model":"fake:bench","stream":false,"messages":[{"role":"user","content":"How are you?"}]}' \
		wrk -t1 -c"$connections" -d"${seconds}s" --timeout 30s -s tools/bench/post.lua "$otari" | grep '^BENCH ') || die "wrk failed"
	# shellcheck disable=SC2086
	set -- "$1" ${line#BENCH }
	[ "$5" = 0 ] || echo "$1: $5 failed requests" >&2
	echo "$1 $2 $3 $4" | tee -a "$dir/figures" >&2
}
median() { # NAME COLUMN
	awk -v n="$1" -v c="$2" '$1 == n { print $c }' "$dir/figures" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] + 0 }'
}

measure warm-up
: >"$dir/figures"
for round in $(seq "$rounds"); do
	echo "round $round of $rounds" >&2
	for name in forks memory output computing; do
		measure "idle-$name"
		running=()
		for i in $(seq "$attackers"); do
			attack $name &
			running+=($!)
		done
		sleep 1
		measure $name
		kill "${running[@]}"
		wait "${running[@]}" 2>/dev/null
		sleep 1
	done
done

ratio() { # NAME COLUMN: the middle one of the rounds' ratios
	paste -d ' ' <(awk -v n="$1" -v c="$2" '$1 == n { print $c }' "$dir/figures") <(awk -v n="idle-$1" -v c="$2" '$1 == n { print $c }' "$dir/figures") |
		awk '{ print $1 / $2 }' | sort -g | awk '{ v[NR] = $1 } END { printf "%.2f", v[int((NR + 1) / 2)] }'
}
report() {
	local name
	echo "$(date -u +%F), $(nproc) processors, load average $(cut -d ' ' -f 1-3 /proc/loadavg), $rounds rounds of $seconds s, $workers workers, $attackers attackers; memory_cgroup:" \
		"$("$out/otarictl" -c "$dir/otari.conf" sandbox check | awk '$1 == "memory_cgroup" { print $2 }')."
	echo
	echo "| beside the requests | requests/s | p50, ms (idle before) | p99, ms (idle before) | p50 : idle | p99 : idle |"
	echo "|---|---|---|---|---|---|"
	for name in forks memory output computing; do
		awk -v n=$name -v r="$(median $name 2)" -v a="$(median $name 3)" -v b="$(median $name 4)" -v ia="$(median idle-$name 3)" \
			-v ib="$(median idle-$name 4)" -v ra="$(ratio $name 3)" -v rb="$(ratio $name 4)" \
			'BEGIN { printf "| %s | %d | %.2f (%.2f) | %.2f (%.2f) | %s | %s |\n", n, r, a / 1000, ia / 1000, b / 1000, ib / 1000, ra, rb }'
	done
}
report | tee build/attack.md
