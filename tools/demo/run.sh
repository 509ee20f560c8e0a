#!/bin/bash
# run.sh - what `make demo` does: a gateway as `make run` starts it, tools/qa-executor against it, and its end
#
#   tools/demo/run.sh [BUILD]                 (release)
#
# The demo model answers, whatever keys the environment has; its state is in a folder of its own that is gone
# afterwards, its port a free one (OTARI_PORT chooses). Status: that of qa-executor, 3 without a sandbox.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
flavour=${1:-release}
[ -e "build/$flavour/otari" ] || echo "building into build/$flavour"
make_ BUILD="$flavour" all || exit 1
dir=$(mktemp -d "${OTARI_TEST_TMP:-${TMPDIR:-/tmp}}/otari-demo.XXXXXX") || exit 1
chmod 711 "$dir"
pids=()
finish() {
	trap - EXIT
	for p in "${pids[@]}"; do { kill "$p" && wait "$p"; } 2>/dev/null; done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
line_of() { # PID FILE PATTERN: waits until the file has such a line, or the process has ended
	until grep -q "$3" "$2"; do
		kill -0 "$1" 2>/dev/null || { cat "$2" >&2; return 1; }
		sleep 0.1
	done
}

# An Anthropic provider, as far as the demonstration needs one.
python3 tools/demo/messages-service >"$dir/service" 2>&1 &
pids=("$!")
line_of "$!" "$dir/service" '^listening' || exit 1
cat >"$dir/providers" <<LINES
  anthropic:
    provider_type: anthropic
    api_base: $(sed 's/^listening on //' "$dir/service")
    api_key: none
LINES

# The metrics listen on the port behind it; both are below those that the kernel gives to connections.
: "${OTARI_PORT:=$(python3 - <<'PORT'
import random
import socket
while True:
    port = random.randrange(20000, 32000, 2)
    with socket.socket() as a, socket.socket() as b:
        try:
            a.bind(("127.0.0.1", port))
            b.bind(("127.0.0.1", port + 1))
        except OSError:
            continue
    print(port)
    break
PORT
)}"
unset "${!ANTHROPIC_@}" "${!OPENAI_@}" "${!MISTRAL_@}" "${!GEMINI_@}" "${!DEEPSEEK_@}" "${!GROQ_@}" "${!OPENROUTER_@}" "${!XAI_@}"
unset RUN_CONF OTARI_MASTER_KEY
export OTARI_PORT OTARI_HOST=127.0.0.1 RUN_STATE=$dir/state RUN_PROVIDERS=$dir/providers
tools/dev-run.sh "$flavour" >"$dir/log" 2>&1 &
pids=("$!" "${pids[@]}")
line_of "$!" "$dir/log" '^Ctrl-C stops it' || exit 1
echo "The gateway answers on http://127.0.0.1:$OTARI_PORT. Behind it: the demo model, and a stand-in for Anthropic's service."

tools/qa-executor --base "http://127.0.0.1:$OTARI_PORT" --key "$(cat "$RUN_STATE/dev.key")" \
	--master-key "$(cat "$RUN_STATE/master.key")" --model demo:chart-1
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || grep -iE ' (warn|error) ' "$dir/log"
exit "$status"
