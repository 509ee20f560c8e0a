# lib.sh - what the test scripts share; sourced from the top of the checkout
OUT=${OUT:-build/asan}
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 2)}
# What listens here is not asked for by way of a proxy.
export no_proxy=127.0.0.1,localhost,${no_proxy:-${NO_PROXY:-}}
die() {
	echo "$0: $*" >&2
	exit 1
}
# make, with the jobs of the caller's make or ours.
make_() {
	case ${MAKEFLAGS:-} in
	*jobserver*) ${MAKE:-make} --no-print-directory "$@" ;;
	*) ${MAKE:-make} --no-print-directory -j"$JOBS" "$@" ;;
	esac
}
