#!/bin/bash
# sdk.sh - the vendors' clients against a real daemon
#
#   tools/test/sdk.sh BUILD-FOLDER [TEST-FILE]...
#
# Brings its own Node.js and the clients from npm into build/sdk, pinned in tests/sdk/package.json and
# kept there until that file changes. Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/test/lib.sh
[ $# -gt 0 ] || set -- build/asan
out=$1
shift
dir=build/sdk
mkdir -p "$dir"

node_bin() {
	local n
	for n in "$dir/node_modules/.bin/node" "$dir/node_modules/node-linux-$arch/bin/node" "$dir/node_modules/node/bin/node"; do
		if [ -x "$n" ] && "$n" -e 'process.exit(+(process.versions.node.split(".")[0] < 22))' 2>/dev/null; then
			echo "$PWD/$n"
			return 0
		fi
	done
	return 1
}

case $(uname -m) in
x86_64) arch=x64 ;;
aarch64) arch=arm64 ;;
*) arch=$(uname -m) ;;
esac

if ! cmp -s tests/sdk/package.json "$dir/.installed" || ! node_bin >/dev/null; then
	rm -rf "$dir/node_modules" "$dir/.installed"
	cp tests/sdk/package.json "$dir/package.json"
	npm='npm --prefix . --no-save --no-package-lock --no-audit --no-fund --loglevel=error --fetch-retries=2'
	(cd "$dir" && $npm install) || die "npm could not install the clients"
	if ! node_bin >/dev/null; then
		# Where npm runs no install scripts, the package of this machine's kind holds the program.
		version=$(sed -n 's/.*"node": "\(.*\)".*/\1/p' tests/sdk/package.json)
		(cd "$dir" && $npm install "node-linux-$arch@$version") || die "npm could not install Node.js"
	fi
	cp tests/sdk/package.json "$dir/.installed"
fi
node=$(node_bin) || die "no Node.js of release 22 or later"

# Modules are looked for beside the files that import them.
rm -f "$dir"/*.mjs
cp tests/sdk/*.mjs "$dir/"
[ $# -gt 0 ] || set -- "$dir"/*.test.mjs
OTARI_TEST_BIN=$(cd "$out" && pwd) || exit 1
OTARI_CHECKOUT=$PWD
export OTARI_TEST_BIN OTARI_CHECKOUT NO_COLOR=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$node" --test --test-reporter=spec --test-concurrency=1 --test-timeout=180000 "$@" 2>&1 | tee "$log"
number() { sed -n "s/^[^a-z]*$1 \([0-9][0-9]*\)\$/\1/p" "$log" | tail -n 1; }
ok=$(number pass) bad=$(number fail) cancelled=$(number cancelled)
bad=$((${bad:-1} + ${cancelled:-0}))
echo "${ok:-0} passed, $bad failed"
[ "$bad" -eq 0 ] && [ "${ok:-0}" -gt 0 ]
