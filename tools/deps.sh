#!/bin/sh
# deps.sh - sees that the Debian packages of a purpose are there
#
#   tools/deps.sh build|run|test|bench ...
#
# As root on Debian, missing packages are installed (no recommended ones, and no daemon is started by
# their installation). Otherwise the list of what is missing is printed, and the exit status is 1.
# With nothing missing it is silent and needs neither root nor a network.
set -eu

BUILD='gcc libc6-dev make pkg-config binutils libevent-dev libcurl4-openssl-dev libjansson-dev
  libmariadb-dev libsqlite3-dev libyaml-dev libssl-dev libseccomp-dev zlib1g-dev'
# The last two read PDF and old Word files for models that do not.
RUN='python3 curl ca-certificates poppler-utils antiword'
# Of MariaDB the programs alone: the tests start servers of their own, and none is set up to run here.
TEST='libcriterion-dev clang libclang-rt-14-dev llvm clang-format mariadb-server-core mariadb-client-core
  openssl curl sqlite3 procps python3 git nodejs npm'
BENCH='nginx-light wrk'

# The command that a package is wanted for: where it exists, whoever installed it, nothing is missing.
command_of() {
	case $1 in
	gcc | make | clang | clang-format | curl | openssl | sqlite3 | python3 | git | wrk | npm | pkg-config) echo "$1" ;;
	nginx-light) echo nginx ;;
	nodejs) echo node ;;
	llvm) echo llvm-symbolizer ;;
	mariadb-server-core) echo mariadbd ;;
	mariadb-client-core) echo my_print_defaults ;;
	procps) echo pgrep ;;
	binutils) echo ar ;;
	poppler-utils) echo pdftotext ;;
	antiword) echo antiword ;;
	esac
}

have() {
	c=$(command_of "$1")
	if [ -n "$c" ] && PATH=$PATH:/usr/sbin command -v "$c" >/dev/null 2>&1; then
		return 0
	fi
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || :)" = installed ]
}

[ $# -gt 0 ] || set -- build run
want=
for purpose; do
	case $purpose in
	build) want="$want $BUILD" ;;
	run) want="$want $RUN" ;;
	test) want="$want $TEST" ;;
	bench) want="$want $BENCH" ;;
	*)
		echo "usage: tools/deps.sh build|run|test|bench ..." >&2
		exit 2
		;;
	esac
done

# Where there are no Debian packages, the commands and pkg-config decide.
if ! command -v dpkg-query >/dev/null 2>&1; then
	missing=
	modules='libevent libevent_pthreads libevent_openssl libcurl jansson libmariadb sqlite3 yaml-0.1
		openssl libseccomp zlib'
	for p in $want; do
		[ "$p" != libcriterion-dev ] || modules="$modules criterion"
		c=$(command_of "$p")
		if [ -n "$c" ] && ! PATH=$PATH:/usr/sbin command -v "$c" >/dev/null 2>&1; then
			case " $missing " in *" $c "*) ;; *) missing="$missing $c" ;; esac
		fi
	done
	for m in $modules; do
		pkg-config --exists "$m" 2>/dev/null || missing="$missing $m"
	done
	[ -n "$missing" ] || exit 0
	echo "Otari is built on Debian 12. Here, install what provides:$missing" >&2
	exit 1
fi

missing=
for p in $want; do
	have "$p" || case " $missing " in *" $p "*) ;; *) missing="$missing $p" ;; esac
done
[ -n "$missing" ] || exit 0

id=
if [ -r /etc/os-release ]; then # a shell ends when it cannot find what it is to source
	id=$(. /etc/os-release && echo "${ID:-} ${ID_LIKE:-}")
fi
case " $id " in
*" debian "*) ;;
*)
	echo "Missing packages (names as in Debian 12):$missing" >&2
	exit 1
	;;
esac
if [ "$(id -u)" != 0 ]; then
	echo "Missing packages. As root, run" >&2
	echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
	echo "or, so that no daemon is started by it, in this folder" >&2
	echo "  tools/deps.sh $*" >&2
	exit 1
fi

echo "installing:$missing"
# A package's script asks policy-rc.d before it starts a service; for this installation the answer is no.
policy=/usr/sbin/policy-rc.d
ours=
cleanup() { [ -z "$ours" ] || rm -f "$policy"; }
trap cleanup EXIT
trap 'exit 1' HUP INT TERM
if [ ! -e "$policy" ]; then
	ours=1
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt='apt-get -q -y -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300'
$apt update
# shellcheck disable=SC2086 # a list of words
$apt install --no-install-recommends $missing
