#!/bin/bash
# test.sh - a root of python3 alone: it is built, sessions run in it, and the host's programs are not there
#
#   tools/rootfs/test.sh BUILD-FOLDER
#
# Ends with "N passed, N failed"; skipped where mmdebstrap is not and cannot be installed.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=$(cd "${1:-build/asan}" && pwd) || exit 1
if ! command -v mmdebstrap >/dev/null; then
	[ "$(id -u)" = 0 ] && apt-get install -y --no-install-recommends mmdebstrap >/dev/null 2>&1
fi
if ! command -v mmdebstrap >/dev/null; then
	echo "SKIPPED rootfs (mmdebstrap is not installed)"
	echo "0 passed, 0 failed"
	exit 0
fi
dir=$(mktemp -d "${OTARI_TEST_TMP:-/tmp}/rootfs.XXXXXX") || exit 1
chmod 755 "$dir"
trap 'rm -rf "$dir"' EXIT
ok=0 bad=0
check() { # WHAT COMMAND...
	if "${@:2}"; then
		ok=$((ok + 1)) && echo "ok $1"
	else
		bad=$((bad + 1)) && echo "FAIL $1"
	fi
}
echo python3 >"$dir/packages"
check "a root is built" tools/rootfs/build.sh -p "$dir/packages" "$dir/root"
[ -d "$dir/root" ] || { echo "$ok passed, $bad failed"; exit 1; }
has_versions() { grep -Eq '^python3 [0-9]' "$dir/root.manifest"; }
no_set_id() { [ -z "$(find "$dir/root" -perm /6000)" ]; }
check "its versions are listed" has_versions
check "it has no set-id program" no_set_id

# What this host has and a root of python3 alone has not.
cat >"$dir/look.py" <<'PY'
import os
HOST
seen = [p for p in host if os.path.lexists(p)]
print("seen", seen)
PY
host=$(comm -23 <(cd / && ls -d usr/bin/* usr/sbin/* usr/lib/* usr/local/bin/* 2>/dev/null | sort) \
	<(cd "$dir/root" && ls -d usr/bin/* usr/sbin/* usr/lib/* usr/local/bin/* 2>/dev/null | sort) | sed "s#.*#    '/&',#")
printf '%s\n' "$host" >"$dir/host"
sed -i -e "/^HOST$/{s/.*/host = [/;r $dir/host
a ]
}" "$dir/look.py"
export PROBES_ROOTFS=$dir/root
invisible() {
	PROBES_RUN=$dir/look.py PROBES_MODE=$1 "$out/probes" >"$dir/out" 2>&1
	grep -q '^seen \[\]' "$dir/out" || { tail -5 "$dir/out"; return 1; }
}
check "$(printf '%s\n' "$host" | grep -c .) files of the host are invisible" invisible best
check "also to a plain user's" invisible plain
for group in python escape; do
	PROBES=$group PROBES_MODE=best,plain "$out/probes" >"$dir/out" 2>&1
	grep '^FAIL\|^tests/' "$dir/out"
	read -r p f < <(sed -n -E 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$dir/out" | tail -n 1) || { p=0 f=1; tail "$dir/out"; }
	ok=$((ok + p)) bad=$((bad + f))
done
echo "$ok passed, $bad failed"
[ "$bad" -eq 0 ]
