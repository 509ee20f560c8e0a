#!/bin/bash
# run.sh - figures of this machine: the fast path beside nginx, translation, sandbox sessions
#
#   tools/bench/run.sh [ROUNDS]        (5)     SECONDS_EACH=4 WORKERS=1 CONNECTIONS=32
#
# Prints Markdown tables; they are also in build/bench.md. Every round measures all targets one after the
# other; a figure is the median of the rounds.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
rounds=${1:-5} seconds=${SECONDS_EACH:-4} workers=${WORKERS:-1} connections=${CONNECTIONS:-32}
out=$PWD/build/release
make_ BUILD=release all build/release/fake-provider build/release/probes || exit 1
PATH=$PATH:/usr/sbin

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
start_fake || exit 1

# --- nginx ---------------------------------------------------------------------------------------------
nginx_port=$((20000 + RANDOM % 20000))
mkdir -p "$dir/nginx"
cat >"$dir/nginx.conf" <<NGINX
worker_processes $workers;
daemon off;
pid $dir/nginx/pid;
error_log $dir/nginx/error.log crit;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path $dir/nginx/body;
	proxy_temp_path $dir/nginx/proxy;
	fastcgi_temp_path $dir/nginx/fastcgi;
	uwsgi_temp_path $dir/nginx/uwsgi;
	scgi_temp_path $dir/nginx/scgi;
	keepalive_requests 1000000;
	upstream provider { server 127.0.0.1:$fake_port; keepalive 64; keepalive_requests 1000000; }
	server {
		listen 127.0.0.1:$nginx_port;
		location / {
			proxy_pass http://provider;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
		}
	}
}
NGINX
[ "$(id -u)" != 0 ] || sed -i '1i user root;' "$dir/nginx.conf"
nginx -p "$dir/nginx" -e "$dir/nginx/error.log" -c "$dir/nginx.conf" >"$dir/nginx/out" 2>&1 &
pids+=($!)

for i in $(seq 100); do
	curl -s -o /dev/null "http://127.0.0.1:$nginx_port/_count" && break
	sleep 0.1
done

# --- otari ------------------------------------------------------------------------------------------
start_otari || exit 1

# --- measuring -----------------------------------------------------------------------------------------
: >"$dir/figures"
shoot() { # NAME URL PATH BODY CONNECTIONS SECONDS
	local line
	line=$(BENCH_PATH=$3 BENCH_BODY=$4 wrk -t1 -c"$5" -d"$6"s --timeout 30s -s tools/bench/post.lua "$2" | grep '^BENCH ') ||
		die "wrk failed for $1"
	set -- "$1" $line
	[ "$6" = 0 ] || echo "$1: $6 failed requests" >&2
	echo "$1 $3 $4 $5" >>"$dir/figures"
}
median() { # NAME COLUMN
	awk -v n="$1" -v c="$2" '$1 == n { print $c }' "$dir/figures" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] + 0 }'
}
chat() { # MODEL STREAM
	printf '{"model":"%s","stream":%s,"messages":[{"role":"user","content":"How are you?"}]}' "$1" "$2"
}
messages() { # MODEL STREAM TOOLS PROMPT
	printf '{"model":"%s","max_tokens":100,"stream":%s,%s"messages":[{"role":"user","content":"%s"}]}' "$@"
}

workers_pids() { pgrep -P "$otari_pid" -f 'otari: worker'; }
cpu_ms() { # of all workers: user and system
	local p sum=0
	for p in $(workers_pids); do
		sum=$((sum + $(awk '{ print $14 + $15 }' "/proc/$p/stat")))
	done
	echo $((sum * 1000 / $(getconf CLK_TCK)))
}
rss_kib() {
	local p sum=0
	for p in $(workers_pids); do sum=$((sum + $(awk '/^VmRSS/ { print $2 }' "/proc/$p/status"))); done
	echo $sum
}
declare -A paths=([chat]=/v1/chat/completions [messages]=/v1/messages [responses]=/v1/responses)
declare -A providers=([chat]=fake [messages]=claude [responses]=answers)
pair() { # CLIENT PROVIDER FORM: requests/s, and CPU time of the gateway for a thousand of them
	local body cpu name=pair-$1-$2-$3
	case $1 in
	chat) body=$(chat "${providers[$2]}:bench" "$3") ;;
	messages) body=$(messages "${providers[$2]}:bench" "$3" "" "How are you?") ;;
	responses) body=$(printf '{"model":"%s","stream":%s,"store":false,"input":"How are you?"}' "${providers[$2]}:bench" "$3") ;;
	esac
	cpu=$(cpu_ms)
	shoot "$name" "$otari" "${paths[$1]}" "$body" "$connections" "$seconds"
	cpu=$(($(cpu_ms) - cpu))
	awk -v n="$name" -v c=$cpu -v s="$seconds" '$1 == n { r = $2 } END { print n "-cpu", c / (r * s / 1000), 0, 0 }' "$dir/figures" >>"$dir/figures"
}
streams() { # how much a thousand open streams hold
	local i fd fds=() before body
	ulimit -n "$(ulimit -Hn)"
	body=$(messages fake:stall true "$tool" hello)
	before=$(rss_kib)
	for i in $(seq 1000); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$otari_port" || return
		printf 'POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s' \
			"$key" ${#body} "$body" >&"$fd"
		fds+=("$fd")
	done
	sleep 3
	awk -v a="$before" -v b="$(rss_kib)" 'BEGIN { printf "%.1f\n", (b - a) / 1000 }' >"$dir/streams"
	for fd in "${fds[@]}"; do exec {fd}>&-; done
}

direct=http://127.0.0.1:$fake_port nginx=http://127.0.0.1:$nginx_port c=/v1/chat/completions
tool='"tools":[{"type":"code_execution_20250825","name":"code_execution"}],'
sandbox=$(wait_sandbox)
for round in $(seq "$rounds"); do
	echo "round $round of $rounds" >&2
	for form in false true; do
		for load in 1 "$connections"; do
			shoot "direct-$form-$load" "$direct" $c "$(chat bench $form)" "$load" "$seconds"
			shoot "nginx-$form-$load" "$nginx" $c "$(chat bench $form)" "$load" "$seconds"
			shoot "otari-$form-$load" "$otari" $c "$(chat fake:bench $form)" "$load" "$seconds"
		done
	done
	for client in chat messages responses; do
		for provider in chat messages responses; do
			pair $client $provider false
			pair $client $provider true
		done
	done
	if [ "$sandbox" = ready ]; then
		export BENCH_PAUSE_MS=300
		shoot text-1 "$otari" /v1/messages "$(messages fake:text false "$tool" 'run: print(1)')" 1 "$((seconds * 3))"
		shoot code-1 "$otari" /v1/messages "$(messages fake:tool false "$tool" 'run: print(1)')" 1 "$((seconds * 3))"
		shoot code2-1 "$otari" /v1/messages "$(messages fake:rounds-2 false "$tool" 'go')" 1 "$((seconds * 3))"
		unset BENCH_PAUSE_MS
	fi
done

streams
if [ "$sandbox" = ready ]; then
	PROBES=measure "$out/probes" 2>/dev/null | sed -n -E \
		's/^measured +(.*[^ ]) +p50 +([0-9.]+) ms +p90 +([0-9.]+) .*n=([0-9]+)$/| \1 | \2 | \3 | \4 |/p' >"$dir/sessions"
fi

report() {
	local form word ratio
	echo "$(date -u +%F), $(nproc) processors ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), $rounds rounds of $seconds s, $workers worker(s) each."
	echo
	echo "| one chat request | direct | nginx | Otari | Otari : nginx |"
	echo "| --- | --- | --- | --- | --- |"
	for form in false true; do
		word=whole
		[ $form = false ] || word=streamed
		awk -v w=$word -v n="$connections" -v d="$(median direct-$form-"$connections" 2)" -v x="$(median nginx-$form-"$connections" 2)" \
			-v o="$(median otari-$form-"$connections" 2)" \
			'BEGIN { printf "| %s, requests/s at %d connections | %d | %d | %d | %.2f |\n", w, n, d, x, o, o / x }'
		for q in 50 99; do
			col=3
			[ $q = 50 ] || col=4
			awk -v w=$word -v q=$q -v d="$(median direct-$form-1 $col)" -v x="$(median nginx-$form-1 $col)" -v o="$(median otari-$form-1 $col)" \
				'BEGIN { printf "| %s, added latency p%d at 1 connection, µs | (%d) | %d | %d | %.2f |\n", w, q, d, x - d, o - d, (x > d) ? (o - d) / (x - d) : 0 }'
		done
	done
	echo
	echo "| client → provider | whole, requests/s | streamed, requests/s | whole, CPU ms per 1,000 | streamed, CPU ms per 1,000 |"
	echo "| --- | --- | --- | --- | --- |"
	local client provider
	for client in chat messages responses; do
		for provider in chat messages responses; do
			awk -v n="$client → $provider" -v a="$(median pair-$client-$provider-false 2)" -v b="$(median pair-$client-$provider-true 2)" \
				-v c="$(median pair-$client-$provider-false-cpu 2)" -v d="$(median pair-$client-$provider-true-cpu 2)" \
				'BEGIN { printf "| %s | %d | %d | %d | %d |\n", n, a, b, c, d }'
		done
	done
	echo
	echo "Memory of the workers for one of a thousand open streams: $(cat "$dir/streams" 2>/dev/null) KiB."
	echo
	if [ "$sandbox" != ready ]; then
		echo "Sandbox: $sandbox, not measured."
		return
	fi
	echo "| sandbox, one request at a time | p50, ms | p99, ms |"
	echo "| --- | --- | --- |"
	for q in "text-1:tool declared, not called" "code-1:one session, \`print(1)\`" "code2-1:one session, two executions"; do
		awk -v w="${q#*:}" -v a="$(median "${q%%:*}" 3)" -v b="$(median "${q%%:*}" 4)" 'BEGIN { printf "| %s | %.2f | %.2f |\n", w, a / 1000, b / 1000 }'
	done
	echo
	echo "| a session by itself, without the gateway | p50, ms | p90, ms | n |"
	echo "| --- | --- | --- | --- |"
	cat "$dir/sessions"
}
report | tee build/bench.md
