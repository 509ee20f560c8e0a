# daemon.sh - a fake provider and an otari before it, for what measures; sourced
#
# The caller has set $out (a build folder) and $dir (a temporary folder), and kills "${pids[@]}" at its end.

until_text() { # FILE PATTERN: the first group, once it is there
	local hit i
	for i in $(seq 300); do
		hit=$(sed -n -E "s/.*$2.*/\1/p" "$1" 2>/dev/null | head -n 1)
		[ -z "$hit" ] || { echo "$hit"; return 0; }
		sleep 0.1
	done
	cat "$1" >&2
	return 1
}


start_fake() { # sets fake_port
	"$out/fake-provider" >"$dir/fake.log" 2>&1 &
	pids+=($!)
	fake_port=$(until_text "$dir/fake.log" 'listening on http:\/\/127\.0\.0\.1:([0-9]+)')
}

start_otari() { # sets otari_pid, otari (its address) and key; more_conf: lines of otari.conf
	chmod 755 "$dir"
	local user=
	if [ "$(id -u)" = 0 ]; then
		user=$(getent passwd otari >/dev/null && echo otari || echo nobody)
		install -d -o "$user" "$dir/state"
	else
		mkdir "$dir/state"
	fi
	cat >"$dir/otari.conf" <<CONF
host: 127.0.0.1
port: 0
admin_listen: ${admin_listen:-none}
workers: $workers
state_dir: $dir/state
master_key: master-key-of-a-bench
sandbox_url: "local:"
log_level: notice
${user:+user: $user}
${more_conf:-}
providers:
  fake: {provider_type: openai, wire: chat, api_base: "http://127.0.0.1:$fake_port/v1", api_key: none}
  claude: {provider_type: anthropic, wire: messages, api_base: "http://127.0.0.1:$fake_port/v1", api_key: none}
  answers: {provider_type: openai, wire: responses, api_base: "http://127.0.0.1:$fake_port/v1", api_key: none}
CONF
	"$out/otari" -f -c "$dir/otari.conf" >"$dir/otari.log" 2>&1 &
	otari_pid=$!
	pids+=("$otari_pid")
	otari_port=$(until_text "$dir/otari.log" '"listening".*"port":([0-9]+)') || return 1
	otari=http://127.0.0.1:$otari_port
	key=$(curl -s -H 'Otari-Key: master-key-of-a-bench' -H 'Content-Type: application/json' -d '{}' "$otari/api/v1/keys" |
		sed -n 's/.*"key":"\([^"]*\)".*/\1/p')
	[ -n "$key" ] || die "no API key"
	export BENCH_KEY=$key
}

wait_sandbox() { # prints its state once it is known
	local state i
	for i in $(seq 300); do
		state=$(curl -s "$otari/health" | sed -n 's/.*"sandbox":"\([a-z]*\)".*/\1/p')
		[ "$state" = testing ] || break
		sleep 0.1
	done
	echo "$state"
}
