#!/bin/bash
# dev-run.sh - what `make run` does after the packages are there: builds, sets up, serves in the foreground
#
#   tools/dev-run.sh [BUILD]                  (release)
#
# RUN_CONF=FILE    serves with that file, as it is, instead of one that is made here
# OTARI_PORT=8000  where to listen, on loopback; OTARI_HOST=0.0.0.0 to be reached from elsewhere
# RUN_STATE=FOLDER keeps the state there
# RUN_PROVIDERS=FILE adds its lines to the providers of the file that is made
#
# As root the state is in /var/lib/otari-dev and the server's processes run as user otari; as a plain
# user it is in ./run. With no provider's key in the environment the demo model answers.
set -u
cd "$(dirname "$0")/.." || exit 1
. tools/test/lib.sh
flavour=${1:-release}
out=$PWD/build/$flavour
host=${OTARI_HOST:-127.0.0.1} port=${OTARI_PORT:-8000}
base=http://127.0.0.1:$port
if curl -s -o /dev/null --max-time 2 "$base/health"; then
	die "something answers on port $port already; another port: OTARI_PORT=8010 make run"
fi
[ -e "$out/otari" ] || echo "building into build/$flavour"
make_ BUILD="$flavour" all || exit 1

if [ "$(id -u)" = 0 ]; then
	user=otari
	if ! getent passwd otari >/dev/null; then
		useradd --system --user-group --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin otari ||
			die "cannot make the user otari"
	fi
	state=${RUN_STATE:-/var/lib/otari-dev}
else
	user=
	state=${RUN_STATE:-$PWD/run}
fi
[[ $state == /* ]] || state=$PWD/$state
# Before anything is written: a server that runs would read it at its next reload.
pid=$(cat "$state/otari.pid" 2>/dev/null)
if [ -n "$pid" ] && grep -q '^otari' "/proc/$pid/comm" 2>/dev/null; then
	die "the server of $state runs already, as process $pid; one beside it: RUN_STATE=FOLDER OTARI_PORT=8010 make run"
fi
mkdir -p "$state" || exit 1
[ -z "$user" ] || chown otari:otari "$state"
chmod 750 "$state"

demo_pid= otari_pid= socket_dir=
stop() {
	trap - EXIT
	[ -z "$otari_pid" ] || { kill -TERM "$otari_pid" && wait "$otari_pid"; } 2>/dev/null
	[ -z "$socket_dir" ] || rm -rf "$socket_dir"
	[ -z "$demo_pid" ] || { kill "$demo_pid" && wait "$demo_pid"; } 2>/dev/null
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- a provider: the first whose usual variable holds a key, else the demo model -------------------
model=
while read -r variable default; do
	if [ -n "${!variable:-}" ]; then
		model=${model:-$default}
	fi
done <<'LIST'
ANTHROPIC_API_KEY anthropic:claude-sonnet-4-5
OPENAI_API_KEY openai:gpt-5-mini
MISTRAL_API_KEY mistral:mistral-medium-latest
GEMINI_API_KEY gemini:gemini-2.5-flash
DEEPSEEK_API_KEY deepseek:deepseek-chat
GROQ_API_KEY groq:openai/gpt-oss-120b
OPENROUTER_API_KEY openrouter:mistralai/mistral-medium-3.1
XAI_API_KEY xai:grok-4
LIST

demo_url=
if [ -z "$model" ] && [ -z "${RUN_CONF:-}" ]; then
	# Another user cannot enter a checkout below root's home, so the program is copied out of it.
	mkdir -p "$state/bin" && rm -f "$state/bin/demo-model" && cp "$out/demo-model" "$state/bin/" || exit 1
	as=()
	if [ -n "$user" ]; then
		chmod 711 "$state"
		chmod 755 "$state/bin"
		as=(setpriv --reuid otari --regid otari --clear-groups)
	fi
	: >"$state/demo-model.log"
	(cd / && exec "${as[@]}" "$state/bin/demo-model" -p 0) >"$state/demo-model.log" 2>&1 &
	demo_pid=$!
	for _ in $(seq 100); do
		demo_url=$(sed -n 's/^demo-model: listening on //p' "$state/demo-model.log")
		[ -z "$demo_url" ] || break
		kill -0 "$demo_pid" 2>/dev/null || break
		sleep 0.05
	done
	[ -n "$demo_url" ] || die "the demo model did not start: $(cat "$state/demo-model.log")"
	model=demo:chart-1
fi

# --- otari.conf --------------------------------------------------------------------------------------
conf=${RUN_CONF:-$state/otari.conf}
# The address of a socket holds 107 bytes; a checkout may lie deeper than that.
socket=$state/control.sock
if [ ${#socket} -gt 107 ]; then
	socket_dir=$(mktemp -d "${TMPDIR:-/tmp}/otari-run.XXXXXX") || exit 1
	socket=$socket_dir/control.sock
fi
if [ -z "${RUN_CONF:-}" ]; then
	{
		echo "# Made by make run, again at each start. To serve with a file of your own: RUN_CONF=FILE make run"
		echo "host: $host"
		echo "port: $port"
		echo "admin_listen: 127.0.0.1:$((port + 1))"
		echo "state_dir: $state"
		echo "control_socket: $socket"
		echo "database_url: sqlite:///$state/otari.db"
		echo "files_local_dir: $state/files"
		echo "sandbox_url: \"local:\""
		echo "log_format: text"
		[ -z "$user" ] || echo "user: $user"
		[ -z "$demo_url${RUN_PROVIDERS:-}" ] || echo "providers:"
		if [ -n "$demo_url" ]; then
			printf '  demo:\n    provider_type: openai\n    wire: chat\n'
			printf '    api_base: %s\n    api_key: none\n' "$demo_url"
		fi
		[ -z "${RUN_PROVIDERS:-}" ] || cat "$RUN_PROVIDERS"
	} >"$conf.new" && mv "$conf.new" "$conf" || exit 1
fi

# --- serve -------------------------------------------------------------------------------------------
"$out/otari" -f -c "$conf" &
otari_pid=$!
up=
for _ in $(seq 300); do
	kill -0 "$otari_pid" 2>/dev/null || break
	if curl -s -f -o /dev/null --max-time 2 "$base/health"; then up=1 && break; fi
	sleep 0.1
done
if [ -z "$up" ]; then
	kill -0 "$otari_pid" 2>/dev/null && die "no answer from $base/health after 30 s"
	wait "$otari_pid"
	status=$?
	otari_pid=
	exit "$status"
fi

# --- a key -------------------------------------------------------------------------------------------
master_file=$state/master.key
master=${OTARI_MASTER_KEY:-$(cat "$master_file" 2>/dev/null)}
key=$(cat "$state/dev.key" 2>/dev/null)
if [ -n "$key" ]; then
	# The key of the last run, unless the database was made anew.
	[ "$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $key" "$base/v1/models")" = 200 ] || key=
fi
if [ -z "$key" ] && [ -n "$master" ]; then
	answer=$(printf 'header = "Otari-Key: %s"' "$master" | curl -s -K - -H 'Content-Type: application/json' \
		-d '{"key_name":"make run"}' "$base/api/v1/keys")
	key=$(printf '%s' "$answer" | sed -n 's/.*"key" *: *"\(gw-[^"]*\)".*/\1/p')
	[ -n "$key" ] || echo "no key was made: $answer" >&2
	(umask 077 && printf '%s\n' "$key" >"$state/dev.key")
fi

# What the sandbox's test at the start said, unless it is in order or a file of the user's own rules.
off=
if [ -z "${RUN_CONF:-}" ]; then
	for _ in $(seq 50); do
		health=$(curl -s --max-time 2 "http://127.0.0.1:$((port + 1))/health")
		case $health in *'"sandbox":"testing"'*) sleep 0.1 ;; *) break ;; esac
	done
	off=$(printf '%s' "$health" | sed -nE 's/.*"sandbox_reason":"(([^"\\]|\\.)*)".*/\1/p' | sed 's/\\"/"/g')
fi

cat >"$state/requests.sh" <<REQUESTS
OTARI=$base
KEY=${key:-PUT-A-KEY-HERE}
MODEL=${model:-PROVIDER:MODEL}

# 1. text: OpenAI's Chat Completions
curl -s \$OTARI/v1/chat/completions -H "Authorization: Bearer \$KEY" -H "Content-Type: application/json" \\
  -d '{"model":"'\$MODEL'","messages":[{"role":"user","content":"Say hello."}]}'; echo

# 2. code: Anthropic's Messages, with its code execution tool
curl -s \$OTARI/v1/messages -H "x-api-key: \$KEY" -H "Content-Type: application/json" \\
  -d '{"model":"'\$MODEL'","max_tokens":2048,"tools":[{"type":"code_execution_20250825","name":"code_execution"}],
       "messages":[{"role":"user","content":"Compute the sum of the first 50 primes with code."}]}'; echo

# 3. chart: upload a CSV file, let the model draw it, download what its code made
cd "\$(mktemp -d)" && printf 'month,revenue\nJan,120\nFeb,135\nMar,99\nApr,160\n' >sales.csv
FILE=\$(curl -s \$OTARI/v1/files -H "x-api-key: \$KEY" -H "anthropic-version: 2023-06-01" -F file=@sales.csv \\
  | sed 's/.*"id" *: *"\([^"]*\)".*/\1/')
curl -s \$OTARI/v1/messages -H "x-api-key: \$KEY" -H "Content-Type: application/json" \\
  -d '{"model":"'\$MODEL'","max_tokens":4096,"tools":[{"type":"code_execution_20250825","name":"code_execution"}],
       "messages":[{"role":"user","content":[{"type":"text","text":"Draw a chart of sales.csv and save it as a file."},
       {"type":"container_upload","file_id":"'\$FILE'"}]}]}' | tee answer.json; echo
CHART=\$(grep -o '"file_id" *: *"[^"]*"' answer.json | sed 's/.*"\([^"]*\)"/\1/' | grep -v "^\$FILE\$" | head -n 1)
[ -n "\$CHART" ] && curl -s \$OTARI/v1/files/\$CHART/content -H "x-api-key: \$KEY" -o chart && ls -l "\$PWD/chart"
REQUESTS
chmod 600 "$state/requests.sh"

echo
echo "Otari answers on $base (OpenAI's SDK: $base/v1, Anthropic's: $base)"
[ -z "$demo_url" ] || echo "No provider key is set: the demo model answers, as $model"
[ -z "$off" ] || echo "The sandbox is off: $off
  A request that needs it, as the second and the third below, is answered with a 503"
[ -n "${RUN_CONF:-}" ] || echo "Metrics and health details: http://127.0.0.1:$((port + 1))/metrics"
echo "The master key, for administration, is in $master_file"
echo "An API key for your programs: ${key:-none}"
echo
echo "Three requests to paste into another terminal (also in $state/requests.sh):"
echo
cat "$state/requests.sh"
echo
echo "Ctrl-C stops it."

wait "$otari_pid"
status=$?
otari_pid=
exit "$status"
