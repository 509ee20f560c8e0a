#include "worker/http/range.h"

enum range_kind
range_parse(struct str header, uint64_t size, uint64_t *ret_first, uint64_t *ret_length)
{
	header = str_trim(header);
	if (!str_starts_nocase(header, STR("bytes=")))
		return RANGE_WHOLE;
	struct str spec = str_trim(str_from(header, 6));
	size_t dash = str_chr(spec, '-');
	if (dash == SIZE_MAX)
		return RANGE_WHOLE;
	struct str from = str_sub(spec, 0, dash), to = str_from(spec, dash + 1);
	uint64_t first, last = UINT64_MAX;
	if (from.len == 0) {
		uint64_t suffix;
		if (!str_u64(to, &suffix))
			return RANGE_WHOLE;
		if (suffix == 0 || size == 0)
			return RANGE_UNSATISFIABLE;
		first = suffix < size ? size - suffix : 0;
	} else {
		if (!str_u64(from, &first) || (to.len > 0 && !str_u64(to, &last)) || last < first)
			return RANGE_WHOLE;
		if (first >= size)
			return RANGE_UNSATISFIABLE;
	}
	if (last >= size)
		last = size - 1;
	*ret_first = first;
	*ret_length = last - first + 1;
	return RANGE_PART;
}

bool
range_if_matches(struct str if_range, struct str etag)
{
	if (if_range.ptr == NULL)
		return true;
	if_range = str_trim(if_range);
	return if_range.len > 0 && if_range.ptr[0] == '"' && str_eq(if_range, etag);
}
