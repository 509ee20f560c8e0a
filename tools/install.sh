#!/bin/sh
# install.sh - puts the release build below PREFIX, or takes it away
#
#   DESTDIR= PREFIX=/usr/local tools/install.sh install|uninstall
#
# Programs:      $PREFIX/sbin/otari, $PREFIX/bin/otarictl, $PREFIX/libexec/otari/otari-init
# Service:       $PREFIX/lib/systemd/system/otari.service; it is neither enabled nor started
# AppArmor:      $PREFIX/share/otari/apparmor, and /etc/apparmor.d/otari where that release knows `userns`
# Configuration: /etc/otari/otari.conf, only when there is none (below PREFIX if that is a home)
# State:         /var/lib/otari, owned by the user otari, which is made when root installs for good
set -eu
cd "$(dirname "$0")/.."
PREFIX=${PREFIX:-/usr/local} DESTDIR=${DESTDIR:-}
out=build/release
case $PREFIX in
/usr | /usr/*) etc=/etc/otari state=/var/lib/otari ;;
*) etc=$PREFIX/etc/otari state=$PREFIX/var/lib/otari ;;
esac
bin=$DESTDIR$PREFIX/bin sbin=$DESTDIR$PREFIX/sbin libexec=$DESTDIR$PREFIX/libexec/otari
man=$DESTDIR$PREFIX/share/man share=$DESTDIR$PREFIX/share/otari units=$DESTDIR$PREFIX/lib/systemd/system
fill() { # TEMPLATE TARGET
	sed "s#@SBIN@#$PREFIX/sbin#g; s#@BIN@#$PREFIX/bin#g; s#@ETC@#$etc#g" "tools/install/$1" >"$2"
	chmod 644 "$2"
}

case ${1:-} in
install)
	install -d "$bin" "$sbin" "$libexec" "$DESTDIR$etc" "$DESTDIR$state"
	install -m 755 "$out/otari" "$sbin/otari"
	install -m 755 "$out/otarictl" "$bin/otarictl"
	install -m 755 "$out/otari-init" "$libexec/otari-init"
	for page in docs/*.[1-9]; do
		[ -f "$page" ] || continue
		install -d "$man/man${page##*.}"
		install -m 644 "$page" "$man/man${page##*.}/"
	done
	install -d "$units" "$share"
	fill otari.service.in "$units/otari.service"
	fill apparmor.in "$share/apparmor"
	if [ -e "$DESTDIR/etc/apparmor.d/abi/4.0" ]; then
		install -m 644 "$share/apparmor" "$DESTDIR/etc/apparmor.d/otari"
		echo "load the AppArmor profile: apparmor_parser -r /etc/apparmor.d/otari"
	fi
	if [ ! -e "$DESTDIR$etc/otari.conf" ]; then
		install -m 640 otari.conf "$DESTDIR$etc/otari.conf"
	fi
	if [ "$(id -u)" = 0 ] && [ -z "$DESTDIR" ]; then
		getent passwd otari >/dev/null ||
			useradd --system --user-group --home-dir "$state" --no-create-home --shell /usr/sbin/nologin otari
		chown otari:otari "$state"
		chgrp otari "$etc/otari.conf"
	fi
	chmod 750 "$DESTDIR$state"
	echo "installed; otari -t -c $etc/otari.conf checks the configuration"
	;;
uninstall)
	rm -f "$sbin/otari" "$bin/otarictl" "$libexec/otari-init" "$units/otari.service" "$share/apparmor" \
		"$DESTDIR/etc/apparmor.d/otari"
	for page in docs/*.[1-9]; do
		[ ! -f "$page" ] || rm -f "$man/man${page##*.}/$(basename "$page")"
	done
	rmdir "$libexec" "$share" 2>/dev/null || :
	echo "removed; $etc and $state are left as they are"
	;;
*)
	echo "usage: tools/install.sh install|uninstall" >&2
	exit 2
	;;
esac
