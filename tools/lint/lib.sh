# lib.sh - the files that are looked at: what is committed or could be
cd "$(dirname "$0")/../.." || exit 1
sources() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -co --exclude-standard -- "$@" | while IFS= read -r f; do [ ! -f "$f" ] || echo "$f"; done
	else
		find . -path ./build -prune -o -path ./run -prune -o -type f -print | sed 's:^\./::' | grep -v node_modules/ |
			while IFS= read -r f; do for p; do case $f in $p) echo "$f" ;; esac done; done
	fi
}
