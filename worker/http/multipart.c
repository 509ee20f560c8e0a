#include "worker/http/multipart.h"

#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "worker/http/multipart_head.h"

#define PADDING_MAX_BYTES 64u /* white space behind a boundary */
/* A piece is what one read of a connection gives; this much is kept at most while paused. */
#define KEPT_MAX_BYTES  (1024u * 1024u)
#define STORE_MAX_BYTES (LIMIT_MULTIPART_HEAD_BYTES * 5u + 64u)

enum state {
	PREAMBLE, /* before the first boundary */
	BOUNDARY, /* right behind one */
	BOUNDARY_DASH,
	BOUNDARY_PADDING,
	BOUNDARY_LF,
	HEAD,
	DATA,
	EPILOGUE, /* behind the last boundary: ignored */
	STOPPED,
	FAILED,
};

struct multipart {
	enum state state;
	const struct multipart_ops *ops;
	void *arg;
	/* CR LF "--" boundary. A CR stands only at its start, so when a match breaks off the next
	 * one can begin no earlier than at the byte that broke it; and what had matched is data
	 * that need not be kept, because it is known. */
	char delimiter[4 + MULTIPART_BOUNDARY_MAX];
	size_t delimiter_len, matched;
	size_t
	    unsent; /* of the matched bytes: assumed, because the line end before was another's */
	size_t padding, preamble_bytes;
	unsigned parts;
	uint64_t part_bytes;
	bool is_paused, wants_end; /* part_end is due */
	struct multipart_part part;
	struct buf head;  /* raw header lines of the part */
	struct buf store; /* decoded names of the part */
	struct buf kept;  /* while paused */
	struct err err;
};

enum err_code
multipart_new(struct str content_type, const struct multipart_ops *ops, void *arg,
    struct multipart **ret, struct err *reterr)
{
	struct buf b = BUF_INIT(sizeof(((struct multipart *)NULL)->delimiter));
	buf_add(&b, STR("\r\n--"));
	enum err_code rc = multipart_read_boundary(content_type, &b, reterr);
	if (rc == ERR_OK) {
		struct multipart *m = MEM_NEW(struct multipart);
		m->ops = ops;
		m->arg = arg;
		m->delimiter_len = b.len;
		memcpy(m->delimiter, b.ptr, b.len);
		m->matched = m->unsent = 2; /* the first boundary needs no line end before it */
		buf_init(&m->head, LIMIT_MULTIPART_HEAD_BYTES);
		buf_init(&m->store, STORE_MAX_BYTES);
		buf_init(&m->kept, KEPT_MAX_BYTES);
		*ret = m;
	}
	buf_done(&b);
	return rc;
}

void
multipart_free(struct multipart **mp)
{
	struct multipart *m = *mp;
	if (m == NULL)
		return;
	*mp = NULL;
	buf_done(&m->head);
	buf_done(&m->store);
	buf_done(&m->kept);
	mem_free(m);
}

bool
multipart_is_paused(const struct multipart *m)
{
	return m->is_paused;
}

void
multipart_stop(struct multipart *m)
{
	m->state = STOPPED;
	m->is_paused = m->wants_end = false;
}

static void
fail(struct multipart *m, enum err_code code, const char *why)
{
	(void)err_set(&m->err, code, "multipart: %s", why);
	m->state = FAILED;
}

/* Whether the handler stopped the reader, or wants to be left alone for a while. */
static void
heed(struct multipart *m, bool goes_on)
{
	if (!goes_on && m->state != STOPPED)
		m->is_paused = true;
}

static void
emit(struct multipart *m, struct str bytes)
{
	if (bytes.len == 0)
		return;
	if (m->state == PREAMBLE) {
		m->preamble_bytes += bytes.len;
		if (m->preamble_bytes > LIMIT_MULTIPART_HEAD_BYTES)
			fail(m, ERR_INPUT, "no boundary at the start");
		return;
	}
	m->part_bytes += bytes.len;
	if (!m->part.has_filename && m->part_bytes > LIMIT_MULTIPART_FIELD_BYTES)
		fail(m, ERR_TOOLARGE, "form field too large");
	else
		heed(m, m->ops->part_data(m->arg, bytes));
}

/* How many bytes at the end of s could be the start of a delimiter. */
static size_t
open_tail(const struct multipart *m, struct str s)
{
	size_t most = m->delimiter_len - 1;
	struct str tail = s.len > most ? str_from(s, s.len - most) : s;
	size_t cr = str_rchr(tail, '\r');
	if (cr == SIZE_MAX)
		return 0;
	tail = str_from(tail, cr);
	return memcmp(tail.ptr, m->delimiter, tail.len) == 0 ? tail.len : 0;
}

static void
boundary_found(struct multipart *m)
{
	m->matched = m->unsent = 0;
	m->padding = 0;
	m->wants_end = m->state == DATA;
	m->state = BOUNDARY;
}

/* Looks for the delimiter; returns how many bytes it took. */
static size_t
take_data(struct multipart *m, struct str s)
{
	if (m->matched > 0) {
		size_t n = 0;
		while (n < s.len && m->matched < m->delimiter_len &&
		       s.ptr[n] == m->delimiter[m->matched]) {
			m->matched++;
			n++;
		}
		if (m->matched == m->delimiter_len) {
			boundary_found(m);
		} else if (n < s.len) {
			struct str was = str_n(m->delimiter, m->matched);
			was = str_from(was, m->unsent);
			m->matched = m->unsent = 0;
			emit(m, was);
		}
		return n;
	}
	size_t at = str_find(s, str_n(m->delimiter, m->delimiter_len));
	if (at != SIZE_MAX) {
		struct str before = str_sub(s, 0, at);
		enum state was = m->state;
		emit(m, before);
		/* A handler that stops or fails on these bytes has the last word. */
		if (m->state == was)
			boundary_found(m);
		return at + m->delimiter_len;
	}
	size_t tail = open_tail(m, s);
	m->matched = tail;
	emit(m, str_sub(s, 0, s.len - tail));
	return s.len;
}

static void
take_padding(struct multipart *m, char c)
{
	if (c == '\r')
		m->state = BOUNDARY_LF;
	else if ((c != ' ' && c != '\t') || ++m->padding > PADDING_MAX_BYTES)
		fail(m, ERR_INPUT, "garbage behind a boundary");
}

/* The bytes between a boundary and the part behind it. */
static void
take_boundary(struct multipart *m, char c)
{
	switch (m->state) {
	case BOUNDARY:
		if (c == '-') {
			m->state = BOUNDARY_DASH;
			return;
		}
		m->state = BOUNDARY_PADDING;
		take_padding(m, c);
		return;
	case BOUNDARY_PADDING:
		take_padding(m, c);
		return;
	case BOUNDARY_DASH:
		if (c != '-')
			fail(m, ERR_INPUT, "garbage behind a boundary");
		else if (m->parts == 0 && m->preamble_bytes > 0)
			fail(m, ERR_INPUT, "text but no part"); /* its boundary was malformed */
		else
			m->state = EPILOGUE;
		return;
	case BOUNDARY_LF:
		buf_clear(&m->head);
		buf_clear(&m->store);
		m->part_bytes = 0;
		if (c != '\n')
			fail(m, ERR_INPUT, "line does not end in CR LF");
		else if (++m->parts > LIMIT_MULTIPART_PARTS)
			fail(m, ERR_TOOLARGE, "too many parts");
		else
			m->state = HEAD;
		return;
	default:
		UNREACHABLE("state");
	}
}

static void
head_is_complete(struct multipart *m)
{
	struct err e;
	struct str lines = buf_str(&m->head);
	lines.len -= 2; /* the empty line */
	if (multipart_read_head(lines, &m->store, &m->part, &e) != ERR_OK) {
		fail(m, e.code, e.msg);
		return;
	}
	m->state = DATA;
	/* An empty part's delimiter may follow at once: the line end before it is the head's own.
	 */
	m->matched = m->unsent = 2;
	heed(m, m->ops->part_begin(m->arg, &m->part));
}

static void
take_head(struct multipart *m, char c)
{
	size_t n = m->head.len;
	bool after_cr = n > 0 && m->head.ptr[n - 1] == '\r';
	if (after_cr != (c == '\n') || c == '\0') {
		fail(m, ERR_INPUT, "line does not end in CR LF");
		return;
	}
	buf_addc(&m->head, c);
	if (m->head.overflowed)
		fail(m, ERR_TOOLARGE, "headers of a part too large");
	else if (c == '\n' && (n == 1 || (n >= 3 && memcmp(m->head.ptr + n - 3, "\r\n\r", 3) == 0)))
		head_is_complete(m);
}

static enum err_code
result(const struct multipart *m, struct err *reterr)
{
	if (m->state != FAILED)
		return ERR_OK;
	if (reterr != NULL)
		*reterr = m->err;
	return m->err.code;
}

/* Takes bytes until there are none or a callback wants a pause; returns what is left. */
static struct str
advance(struct multipart *m, struct str s)
{
	while (!m->is_paused) {
		if (m->wants_end) {
			m->wants_end = false;
			heed(m, m->ops->part_end(m->arg));
			continue;
		}
		if (m->state == EPILOGUE || m->state == STOPPED || m->state == FAILED)
			return STR("");
		if (s.len == 0)
			break;
		size_t taken = 1;
		if (m->state == PREAMBLE || m->state == DATA)
			taken = take_data(m, s);
		else if (m->state == HEAD)
			take_head(m, s.ptr[0]);
		else
			take_boundary(m, s.ptr[0]);
		s = str_from(s, taken);
	}
	return s;
}

enum err_code
multipart_feed(struct multipart *m, struct str bytes, struct err *reterr)
{
	CHECK(!m->is_paused);
	struct str left = advance(m, bytes);
	if (m->is_paused) {
		buf_add(&m->kept, left);
		if (m->kept.overflowed)
			fail(m, ERR_TOOLARGE, "piece too large");
	}
	return result(m, reterr);
}

enum err_code
multipart_resume(struct multipart *m, struct err *reterr)
{
	if (m->is_paused) {
		m->is_paused = false;
		size_t before = m->kept.len;
		struct str left = advance(m, buf_str(&m->kept));
		buf_consume(&m->kept, before - (m->is_paused ? left.len : 0));
	}
	return result(m, reterr);
}

enum err_code
multipart_end(struct multipart *m, struct err *reterr)
{
	CHECK(!m->is_paused);
	if (m->state != EPILOGUE && m->state != STOPPED && m->state != FAILED)
		fail(m, ERR_INPUT, "the last boundary is missing");
	return result(m, reterr);
}
