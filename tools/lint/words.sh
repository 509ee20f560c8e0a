#!/bin/bash
# words.sh - the repository speaks of itself alone: no path of a machine, no registry's host, no key
. "$(dirname "$0")/lib.sh"
bad=0
look() { # WHAT PATTERN [FILE-PATTERN]...
	local hits
	hits=$(sources '*' | grep -v -E '^tools/lint/words\.sh$|^tests/fuzz/corpus/|^LICENSE$' |
		xargs -d '\n' grep -n -I -E -e "$2" 2>/dev/null)
	[ -z "$hits" ] || { echo "$1:"; printf '%s\n' "$hits"; bad=1; }
}
look 'a path of one machine' '(^|[^a-zA-Z0-9_./-])/(work/(main|wt|shared)|tmp/(guide|land)\.)'
look 'a package registry' 'registry\.[a-z]+\.(org|com)|pypi\.org|deb\.debian\.org|"resolved": *"http'
look 'something like a key' 'sk-(ant-|proj-)[A-Za-z0-9_-]{20}|AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY'
look 'trailing white space' '[^ ]	+$|[^ ]  *$'
exit $bad
