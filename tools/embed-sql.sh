#!/bin/sh
# embed-sql.sh: writes schema/{sqlite,mysql}/NNNN_*.sql as C to standard output (schema/migrations.h).
set -eu
cd "$(dirname "$0")/.."

fail() {
	echo "embed-sql: $1" >&2
	exit 1
}

echo '#include "schema/migrations.h"'
for kind in sqlite mysql; do
	table=
	next=1
	for file in schema/$kind/[0-9][0-9][0-9][0-9]_*.sql; do
		name=$(basename "$file" .sql)
		number=$(expr "${name%%_*}" + 0)
		[ "$number" -eq "$next" ] || fail "$file: step $next is expected"
		printf 'static const unsigned char %s_%s[] = {\n' "$kind" "$number"
		od -An -v -tu1 -w24 "$file" | sed 's/^ *//; s/  */,/g; s/$/,/'
		echo '};'
		table="$table{$number, \"$name\", ${kind}_$number, sizeof(${kind}_$number)}, "
		next=$((next + 1))
	done
	printf 'const struct schema_step schema_%s[] = {%s};\n' "$kind" "$table"
	printf 'const size_t schema_%s_count = sizeof(schema_%s) / sizeof(schema_%s[0]);\n' \
		"$kind" "$kind" "$kind"
done
