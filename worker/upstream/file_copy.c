#include "worker/upstream/file_copy.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/http_client.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "worker/http/disposition.h"
#include "worker/upstream/headers.h"

#define TRIES         2u
#define BYTES_PER_MS  64u
#define UPLOAD_MAX_MS 3600000u
#define DIGITS(n)     #n
#define SPELT(n)      DIGITS(n)
#define LIFETIME      SPELT(FILE_COPY_LIFETIME_S)

struct file_copy {
	struct http_client *client;
	struct arena *arena;
	const struct target *target;
	struct file_copy_source source;
	file_copy_done *done;
	void *arg;
	struct http_call *http;
	struct http_call_spec spec;
	struct upstream_headers headers;
	struct buf head, tail; /* of the form, around the file */
	uint64_t sent;         /* of all three */
	struct buf answer;
	int status; /* 0: no head yet */
	unsigned tries;
};

/* --- the form ------------------------------------------------------------------------------------
 */
static void
write_field(struct file_copy *c, const char *boundary, const char *name, const char *value)
{
	buf_printf(&c->head, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n",
	    boundary, name, value);
}

static void
write_form(struct file_copy *c, const char *boundary)
{
	if (c->target->wire == WIRE_MESSAGES) {
		write_field(c, boundary, "expires_in_seconds", LIFETIME);
	} else {
		write_field(c, boundary, "purpose", "user_data");
		write_field(c, boundary, "expires_after[anchor]", "created_at");
		write_field(c, boundary, "expires_after[seconds]", LIFETIME);
	}
	buf_printf(&c->head, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"",
	    boundary);
	disposition_form_name(&c->head, c->source.name);
	buf_add(&c->head, STR("\"\r\nContent-Type: "));
	for (size_t i = 0; i < c->source.mime_type.len; i++)
		if (c->source.mime_type.ptr[i] > 0x20 && c->source.mime_type.ptr[i] < 0x7f)
			buf_addc(&c->head, c->source.mime_type.ptr[i]);
	buf_add(&c->head, STR("\r\n\r\n"));
	buf_printf(&c->tail, "\r\n--%s--\r\n", boundary);
}

static ssize_t
take(struct str from, uint64_t offset, char *dst, size_t room)
{
	struct str rest = str_sub(str_from(from, (size_t)offset), 0, room);
	memcpy(dst, rest.ptr, rest.len);
	return (ssize_t)rest.len;
}

static ssize_t
read_body(void *arg, char *dst, size_t room)
{
	struct file_copy *c = arg;
	uint64_t file_end = c->head.len + c->source.bytes;
	ssize_t n;
	if (c->sent < c->head.len) {
		n = take(buf_str(&c->head), c->sent, dst, room);
	} else if (c->sent < file_end) {
		uint64_t left = file_end - c->sent;
		do
			n = pread(c->source.fd, dst, left < room ? (size_t)left : room,
			    (off_t)(c->sent - c->head.len));
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return -1; /* it is shorter than it was */
	} else {
		n = take(buf_str(&c->tail), c->sent - file_end, dst, room);
	}
	c->sent += (uint64_t)n;
	return n;
}

/* --- the call ------------------------------------------------------------------------------------
 */
static void
release(struct file_copy *c)
{
	fd_close(&c->source.fd);
	buf_done(&c->head);
	buf_done(&c->tail);
	buf_done(&c->answer);
	mem_free(c);
}

static void
on_head(void *arg, struct http_call *http, int status)
{
	struct file_copy *c = arg;
	c->http = http;
	c->status = status;
}

static bool
on_data(void *arg, struct http_call *http, struct str bytes)
{
	struct file_copy *c = arg;
	(void)http;
	buf_add(&c->answer, bytes); /* what is too much is found out at the end */
	return true;
}

static struct str
id_of(struct file_copy *c)
{
	struct jval root;
	if (c->answer.overflowed ||
	    jdoc_parse(c->arena, buf_str(&c->answer), &root, NULL) != ERR_OK)
		return STR("");
	struct str id = jv_str(c->arena, jv_get(root, "id"));
	return id.len <= FILE_COPY_ID_BYTES ? arena_str(c->arena, id) : STR("");
}

static enum err_code start(struct file_copy *c, struct err *reterr);

static void
on_done(void *arg, struct http_call *http, const struct err *err)
{
	struct file_copy *c = arg;
	struct failure f = {.status = 0};
	struct str id = STR("");
	c->http = NULL;
	/* a kept connection that the other side had just closed */
	if (err != NULL && err->code == ERR_UPSTREAM && c->status == 0 && c->tries < TRIES &&
	    start(c, NULL) == ERR_OK)
		return;
	if (err != NULL)
		failure_from_err(c->arena, err, &f);
	else if (c->status < 200 || c->status > 299)
		failure_from_status(c->arena, c->status, buf_str(&c->answer),
		    http_call_header(http, "retry-after"), c->target, &f);
	else
		id = id_of(c);
	if (f.status == 0 && id.len == 0)
		f = (struct failure){.status = 502,
		    .message = STR("the provider took a file and did not say what it calls it"),
		    .cause = STR("no id in the answer to an upload")};
	file_copy_done *done = c->done;
	void *done_arg = c->arg;
	release(c);
	done(done_arg, id, f.status != 0 ? &f : NULL);
}

static const struct http_call_ops call_ops = {on_head, on_data, on_done};

static enum err_code
start(struct file_copy *c, struct err *reterr)
{
	c->tries++;
	c->sent = 0;
	return http_call_start(c->client, &c->spec, &call_ops, c, &c->http, reterr);
}

/* The answer comes when all bytes are there: as long as a provider may take for one, and the time
 * of the slowest upload that is waited for. 0: for ever. */
static uint32_t
answer_timeout_ms(const struct target *t, uint64_t bytes)
{
	uint64_t slow_ms = bytes / BYTES_PER_MS;
	if (slow_ms > UPLOAD_MAX_MS)
		slow_ms = UPLOAD_MAX_MS;
	uint64_t sum = t->first_byte_ms + slow_ms;
	return t->first_byte_ms == 0 ? 0 : sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

enum err_code
file_copy_start(struct http_client *client, struct arena *a, const struct target *target,
    const struct file_copy_source *source, file_copy_done *done, void *arg, struct file_copy **ret,
    struct err *reterr)
{
	char boundary[ID_SIZE];
	struct file_copy *c = MEM_NEW(struct file_copy);
	*c = (struct file_copy){.client = client,
	    .arena = a,
	    .target = target,
	    .source = *source,
	    .done = done,
	    .arg = arg};
	id_make("otari-", boundary);
	buf_init(&c->head, 16384);
	buf_init(&c->tail, 256);
	buf_init(&c->answer, FILE_COPY_ANSWER_BYTES);
	write_form(c, boundary);
	upstream_headers_begin(&c->headers, a, target,
	    arena_printf(a, "multipart/form-data; boundary=%s", boundary), STR("application/json"));
	upstream_headers_end(&c->headers, target);
	c->spec = (struct http_call_spec){
	    .method = "POST",
	    .url = arena_printf(a, "%.*s/files", STR_FMT(target->api_base)),
	    .headers = c->headers.list,
	    .header_count = c->headers.count,
	    .read_body = read_body,
	    .body_bytes = (int64_t)(c->head.len + source->bytes + c->tail.len),
	    .connect_timeout_ms = target->connect_ms,
	    .first_byte_timeout_ms = answer_timeout_ms(target, source->bytes),
	    .idle_timeout_ms = target->idle_ms,
	    .proxy = target->proxy.len > 0 ? arena_cstr(a, target->proxy) : NULL,
	};
	enum err_code rc = start(c, reterr);
	if (rc != ERR_OK) {
		release(c);
		return rc;
	}
	*ret = c;
	return ERR_OK;
}

void
file_copy_cancel(struct file_copy **cp)
{
	struct file_copy *c = *cp;
	*cp = NULL;
	if (c == NULL)
		return;
	http_call_cancel(&c->http);
	release(c);
}
