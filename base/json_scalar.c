#include "base/json_scalar.h"

#include <string.h>

#include "base/err.h"

bool
json_literal_begins(struct str s, bool *ret_whole)
{
	static const char *const words[] = {"true", "false", "null"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_starts(str_c(words[i]), s)) {
			*ret_whole = s.len == strlen(words[i]);
			return true;
		}
	return false;
}

static size_t
digits(struct str s, size_t at)
{
	size_t n = 0;
	while (at + n < s.len && s.ptr[at + n] >= '0' && s.ptr[at + n] <= '9')
		n++;
	return n;
}

bool
json_is_number(struct str s)
{
	size_t at = s.len > 0 && s.ptr[0] == '-';
	size_t whole = digits(s, at);
	if (whole == 0 || (whole > 1 && s.ptr[at] == '0'))
		return false;
	at += whole;
	if (at < s.len && s.ptr[at] == '.') {
		size_t n = digits(s, at + 1);
		if (n == 0)
			return false;
		at += 1 + n;
	}
	if (at < s.len && (s.ptr[at] | 0x20) == 'e') {
		at++;
		at += at < s.len && (s.ptr[at] == '+' || s.ptr[at] == '-');
		size_t n = digits(s, at);
		if (n == 0)
			return false;
		at += n;
	}
	return at == s.len;
}
