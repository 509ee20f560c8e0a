#!/bin/bash
# run.sh - ten thousand sandbox sessions through one daemon; nothing may be more at the end than at the start
#
#   tools/soak/run.sh [SESSIONS]     (10000)     CONNECTIONS=6 WORKERS=2
#
# Requests run code, produce files, kill their interpreter, leave processes behind or fill their disk; some clients leave
# in the middle. Every tenth of the way, at rest: descriptors, resident memory and number of otari's processes, mounts,
# cgroups. Prints a Markdown table (also build/soak.md). Exit status 1 when something grew.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
sessions=${1:-10000} connections=${CONNECTIONS:-6} workers=${WORKERS:-2}
out=$PWD/build/release
make_ BUILD=release all build/release/fake-provider || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/otari-soak.XXXXXX") || exit 1
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
admin_listen=127.0.0.1:0
start_otari || exit 1
[ "$(wait_sandbox)" = ready ] || die "the sandbox is not ready"
admin=http://127.0.0.1:$(until_text "$dir/otari.log" '"listening".*"admin_port":([0-9]+)') || exit 1

# --- what is asked -------------------------------------------------------------------------------------
body() { # CODE, as inside a JSON string
	printf '{"model":"fake:tool","max_tokens":100,"tools":[{"type":"code_execution_20250825","name":"code_execution"}],"messages":[{"role":"user","content":"run: %s"}]}\n' "$1"
}
many() { # TIMES CODE
	local i
	for i in $(seq "$1"); do body "$2"; done
}
{
	many 12 'print(sum(range(100)))'
	many 4 "open('a.csv', 'w').write('x,y\\\\n' * 500)"
	many 1 "open('/tmp/b', 'wb').write(bytes(20 << 20))"
	many 1 'import os; os._exit(3)'
	many 1 'import os; os.kill(-1, 9)'
	many 1 "import subprocess; [subprocess.Popen(['sleep', '1000']) for i in range(5)]"
} >"$dir/bodies"
export SOAK_BODIES=$dir/bodies

# --- what is counted -----------------------------------------------------------------------------------
metric() { curl -s "$admin/metrics" | awk -v n="$1" '$1 == n { print $2; found = 1 } END { if (!found) print 0 }'; }
tree() { # PID: it and all below it
	local p
	echo "$1"
	for p in $(cat "/proc/$1/task"/*/children 2>/dev/null); do tree "$p"; done
}
title() { tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null; }
sum_fds() {
	local p sum=0
	for p; do sum=$((sum + $(ls "/proc/$p/fd" 2>/dev/null | wc -l))); done
	echo $sum
}
sum_rss() {
	local p kib=0
	for p; do kib=$((kib + $(awk '/^VmRSS/ { print $2 }' "/proc/$p/status" 2>/dev/null || echo 0))); done
	echo $kib
}
rest() { # until no session is leased and the pool is as full as it gets
	local i last=-1 now
	for i in $(seq 300); do
		now=$(metric otari_sandbox_pool_ready)
		if [ "$(metric otari_sandbox_pool_leased)" = 0 ] && [ "$(metric otari_sandbox_pool_starting)" = 0 ] &&
			[ "$now" = "$last" ] && [ "$now" -ge "$pool" ]; then
			return 0
		fi
		last=$now
		sleep 0.5
	done
	echo "it does not come to rest" >&2
	return 1
}
sample() { # one line of numbers, in the order of the table
	local p all workers_pids=() spawner_pids=() inner=
	all=$(tree "$otari_pid")
	for p in $all; do
		case $(title "$p") in
		*"otari: worker"*) workers_pids+=("$p") ;;
		*"otari: spawner"* | *"otari: filler"*) spawner_pids+=("$p") inner=$p ;;
		esac
	done
	# shellcheck disable=SC2086
	echo "$(metric otari_sandbox_session_seconds_count) $(metric otari_sandbox_sessions_failed_total)" \
		"$(sum_fds "$otari_pid") $(sum_fds "${workers_pids[@]}") $(sum_fds "${spawner_pids[@]}")" \
		"$(sum_rss "$otari_pid") $(sum_rss "${workers_pids[@]}") $(sum_rss "${spawner_pids[@]}")" \
		"$(echo $all | wc -w) $(cat /proc/self/mountinfo "/proc/$inner/mountinfo" | wc -l)" \
		"$(find /sys/fs/cgroup -type d -path "*/otari.${spawner_pids[0]}.*" 2>/dev/null | wc -l)"
	[ -z "${SOAK_FDS:-}" ] || for p in "${workers_pids[@]}"; do ls -l "/proc/$p/fd" | sed 's/.*-> //; s/\[[0-9]*\]//' | sort | uniq -c >&2; done
}

leave() { # clients that go away, until killed
	local i=0
	while sleep 0.2; do
		i=$((i + 1))
		curl -s -o /dev/null --max-time "0.0$((i % 9 + 1))" -H "Authorization: Bearer $BENCH_KEY" -H 'Content-Type: application/json' \
			-d "$(body 'import time; time.sleep(5)')" "$otari/v1/messages"
	done
}

pool=$(sed -n 's/^#sandbox_pool_size: *\([0-9]*\).*/\1/p' otari.conf)
run() { # N: until so many sessions were leased in all
	local n
	leave &
	local leaver=$!
	while n=$(metric otari_sandbox_leases_total) && [ "$n" -lt "$1" ]; do
		SOAK_SEED=$n wrk -t1 -c"$connections" -d"${CHUNK_S:-5}s" --timeout 60s -s tools/soak/mix.lua "$otari" >"$dir/wrk.log" ||
			die "wrk failed"
		grep -q '^SOAK [1-9]' "$dir/wrk.log" || { cat "$dir/wrk.log" >&2; return 1; }
		awk '$1 == "SOAK" { print $2, $3, $4 }' "$dir/wrk.log" >>"$dir/rates"
	done
	kill $leaver 2>/dev/null
	wait $leaver 2>/dev/null
	return 0
}

began=$(date +%s)
step=$((sessions / 10))
# The first tenth warms up: libraries are mapped, caches filled, the zygote forked from.
for i in $(seq 1 10); do
	run $((i * step)) && rest || exit 1
	sample >>"$dir/samples"
	tail -n 1 "$dir/samples" >&2
done

report() {
	local w
	echo "$(date -u +%F), $(nproc) processors, load average $(cut -d ' ' -f 1-3 /proc/loadavg), $workers workers, $connections connections," \
		"$(($(date +%s) - began)) s; $(awk '{ n += $1; us += $2; bad += $3 } END { printf "%d requests, %.1f a second, %d not answered with 200", n, n / (us / 1e6), bad }' "$dir/rates")."
	curl -s "$admin/metrics" | awk '/^otari_sandbox_kills_total/ { gsub(/.*reason="|"}/, "", $1); printf "%s%s: %d", (n++ ? ", " : "Ends: "), $1, $2 } END { print "." }'
	echo
	echo "| sessions made | failed | descriptors: master | workers | spawner | KiB: master | workers | spawner | processes | mounts | cgroups |"
	echo "|---|---|---|---|---|---|---|---|---|---|---|"
	while read -r line; do echo "| ${line// / | } |"; done <"$dir/samples"
}
report | tee build/soak.md
# From the second sample to the last. Of processes and descriptors a few may be there by chance (an interpreter that is
# just being replaced, a connection that is kept); memory may be a tenth and 2 MiB more.
awk '
	NR == 2 { for (i = 3; i <= 11; i++) first[i] = $i }
	{ for (i = 3; i <= 11; i++) last[i] = $i; failed = $2 }
	END {
		split("x,x,descriptors of the master,descriptors of the workers,descriptors of the spawner,memory of the master,memory of the workers,memory of the spawner,processes,mounts,cgroups", name, ",")
		for (i = 3; i <= 11; i++) {
			most = first[i] + (i <= 5 ? 8 : i <= 8 ? first[i] / 10 + 2048 : i == 9 ? 2 : 0)
			if (last[i] > most) { printf "%s grew: %d, %d before\n", name[i], last[i], first[i]; bad++ }
		}
		if (failed > 0) { print failed " sessions could not be made"; bad++ }
		if (!bad) print "nothing grew"
		exit bad > 0
	}' "$dir/samples"
