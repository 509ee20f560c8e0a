#include "worker/api/timestamp.h"

/* Cuts n digits off the front. */
static bool
digits(struct str *s, size_t n, int64_t *ret)
{
	uint64_t v;
	if (s->len < n || !str_u64(str_sub(*s, 0, n), &v))
		return false;
	*s = str_from(*s, n);
	*ret = (int64_t)v;
	return true;
}

static bool
one_of(struct str *s, const char *set)
{
	if (s->len == 0)
		return false;
	for (; *set != '\0'; set++) {
		if (s->ptr[0] == *set) {
			*s = str_from(*s, 1);
			return true;
		}
	}
	return false;
}

/* Days since 1970-01-01 in the Gregorian calendar; years are counted from March, so that the leap
 * day comes last. */
static int64_t
days_of(int64_t y, int64_t m, int64_t d)
{
	y -= m <= 2;
	int64_t era = y / 400, yoe = y - era * 400;
	int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static int64_t
days_in_month(int64_t y, int64_t m)
{
	static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool is_leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
	return m == 2 && is_leap ? 29 : days[m - 1];
}

/* "", "Z", "+02:00"; *ret in seconds east of UTC. */
static bool
offset(struct str *s, int64_t *ret)
{
	int64_t h, m;
	*ret = 0;
	if (s->len == 0 || one_of(s, "Zz"))
		return true;
	bool is_west = s->ptr[0] == '-';
	if (!one_of(s, "+-") || !digits(s, 2, &h) || !one_of(s, ":") || !digits(s, 2, &m))
		return false;
	if (h > 23 || m > 59)
		return false;
	*ret = (h * 3600 + m * 60) * (is_west ? -1 : 1);
	return true;
}

bool
timestamp_parse(struct str s, int64_t *ret)
{
	int64_t y, mo, d, h, mi, sec, off;
	if (!digits(&s, 4, &y) || !one_of(&s, "-") || !digits(&s, 2, &mo) || !one_of(&s, "-") ||
	    !digits(&s, 2, &d) || !one_of(&s, "Tt "))
		return false;
	if (!digits(&s, 2, &h) || !one_of(&s, ":") || !digits(&s, 2, &mi) || !one_of(&s, ":") ||
	    !digits(&s, 2, &sec))
		return false;
	if (one_of(&s, ".")) {
		if (s.len == 0 || s.ptr[0] < '0' || s.ptr[0] > '9')
			return false;
		while (one_of(&s, "0123456789"))
			;
	}
	if (!offset(&s, &off) || s.len != 0)
		return false;
	if (y < 1970 || mo < 1 || mo > 12 || d < 1 || d > days_in_month(y, mo) || h > 23 ||
	    mi > 59 || sec > 60)
		return false;
	int64_t t = days_of(y, mo, d) * 86400 + h * 3600 + mi * 60 + sec - off;
	if (t < 0)
		return false;
	*ret = t;
	return true;
}
