#!/bin/bash
# build.sh - a directory for sandbox_rootfs, made of Debian packages
#
#   tools/rootfs/build.sh [-p PACKAGES] [-l MANIFEST] TARGET
#
# PACKAGES: the list (default tools/rootfs/packages). MANIFEST of an earlier build: exactly its versions, as far as the
# archive still has them. TARGET must not exist. Needs mmdebstrap; packages come from where this machine's apt gets its
# own, by its own keys. As root, or as a user who may make user namespaces.
#
# The directory holds only what a sandbox shows (usr, bin, lib…, and of etc what is not made anew for each sandbox):
# no documentation, no package manager's state, no set-id bit. Beside it: TARGET.manifest (package version, one a line).
# The last line is a digest over names, modes and contents, the same for the same manifest.
set -eu -o pipefail
here=$(dirname "$0") list= lock=
export LC_ALL=C SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}
die() {
	echo "$0: $*" >&2
	exit 1
}
while getopts p:l: o; do
	case $o in
	p) list=$OPTARG ;;
	l) lock=$OPTARG ;;
	*) die "usage: build.sh [-p PACKAGES] [-l MANIFEST] TARGET" ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || die "usage: build.sh [-p PACKAGES] [-l MANIFEST] TARGET"
target=$1
[ ! -e "$target" ] || die "$target exists"
command -v mmdebstrap >/dev/null || die "needs mmdebstrap (apt-get install mmdebstrap)"
command -v apt-get >/dev/null || die "needs a Debian host: its archive is apt's own"
list=${list:-$here/packages}

# Where apt gets its packages from, one line each.
sources() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(SIGNED_BY)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' | sort -u |
		while IFS='|' read -r key uri release component; do
			case $key in '$'* | '') key= ;; *) key="[signed-by=$key] " ;; esac
			echo "deb $key$uri $release $component"
		done
}
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ -n "$suite" ] || die "no release name in /etc/os-release"

packages=$(sed 's/#.*//; s/[[:space:]]//g; /^$/d' "$list")
[ -z "$lock" ] || packages=$(sed 's/ /=/' "$lock")
work=$(mktemp -d "${TMPDIR:-/tmp}/otari-rootfs.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
sources | mmdebstrap --quiet --variant=essential --include="$(echo $packages | tr ' ' ',')" \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/share/lintian/*' --aptopt='APT::Install-Recommends "false"' \
	--customize-hook='chroot "$1" dpkg-query -W -f "\${Package} \${Version}\n" >"$1/manifest"' \
	"$suite" "$work/root.tar" - >&2

mkdir "$work/root"
# Device nodes are not ours to make, and nothing here needs one.
tar -C "$work/root" -xf "$work/root.tar" --no-same-owner --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*'
root=$work/root
sort "$root/manifest" >"$work/manifest"
mkdir -p "$work/etc"
for f in ld.so.cache alternatives fonts matplotlibrc mime.types localtime $(cd "$root/etc" && ls -d python3* 2>/dev/null); do
	[ ! -e "$root/etc/$f" ] || cp -a "$root/etc/$f" "$work/etc/"
done
rm -rf "$root/etc" "$root/manifest"
mv "$work/etc" "$root/etc"
for d in "$root"/* "$root"/.[!.]*; do
	case ${d##*/} in
	usr | bin | sbin | lib | lib32 | lib64 | libx32 | opt | etc) ;;
	*) rm -rf "$d" ;;
	esac
done
rm -rf "$root"/usr/share/{doc,man,info,locale,lintian,bug,zoneinfo/right,zoneinfo/posix} "$root"/usr/{games,include,src} \
	"$root"/usr/local
mkdir -p "$root/usr/local"
# What an installed system starts with, and tools that change one.
rm -f "$root"/usr/{bin,sbin}/{apt*,dpkg*,su,mount,umount,passwd,chsh,chfn,gpasswd,newgrp,chage,expiry,useradd,usermod,userdel,groupadd,groupdel,groupmod} \
	"$root"/{bin,sbin}/{su,mount,umount} 2>/dev/null || :
find "$root" -xdev -type f -perm /6000 -exec chmod ug-s {} +
find "$root" -xdev ! -type l -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} + 2>/dev/null || :
rmdir "$root/opt" 2>/dev/null || :
chmod 755 "$root"
mkdir -p "$(dirname "$target")"
mv "$root" "$target"
install -m 644 "$work/manifest" "$target.manifest"

digest=$(cd "$target" && find . -print0 | sort -z | while IFS= read -r -d '' f; do
	if [ -L "$f" ]; then
		printf '%s l %s\n' "$f" "$(readlink "$f")"
	elif [ -f "$f" ]; then
		printf '%s f %s\n' "$f" "$(stat -c %a "$f")"
	else
		printf '%s d %s\n' "$f" "$(stat -c %a "$f")"
	fi
done | cat - <(find . -type f ! -name '*.pyc' ! -name ld.so.cache -print0 | sort -z | xargs -0 sha256sum) | sha256sum | cut -d ' ' -f 1)
echo "packages: $(wc -l <"$target.manifest"), size: $(du -sm "$target" | cut -f 1) MiB"
echo "sandbox_rootfs: $(cd "$target" && pwd)"
echo "digest: $digest"
