/* Packed payloads: codec, settings of the master, talk with the builder. */
#include <criterion/criterion.h>

#include "base/arena.h"
#include "ipc/build.h"
#include "ipc/codec.h"

TestSuite(codec, .timeout = 10);

Test(codec, gives_back_what_was_put)
{
	struct buf b = BUF_INIT(4096);
	codec_put_u8(&b, 7);
	codec_put_u32(&b, 0xDEADBEEF);
	codec_put_u64(&b, UINT64_MAX - 1);
	codec_put_i64(&b, INT64_MIN);
	codec_put_bool(&b, true);
	codec_put_str(&b, STR_NULL);
	codec_put_str(&b, STR(""));
	codec_put_str(&b, STR("a\0b"));
	codec_put_bytes(&b, "xyz", 3);
	codec_put_u32(&b, 2);
	codec_put_u32(&b, 1);
	codec_put_u32(&b, 2);
	struct codec_reader r = codec_reader(buf_str(&b));
	cr_assert_eq(codec_get_u8(&r), 7);
	cr_assert_eq(codec_get_u32(&r), 0xDEADBEEF);
	cr_assert_eq(codec_get_u64(&r), UINT64_MAX - 1);
	cr_assert_eq(codec_get_i64(&r), INT64_MIN);
	cr_assert(codec_get_bool(&r));
	cr_assert_null(codec_get_str(&r).ptr);
	struct str empty = codec_get_str(&r);
	cr_assert(empty.ptr != NULL && empty.len == 0);
	cr_assert(str_eq(codec_get_str(&r), STR("a\0b")));
	char xyz[3];
	codec_get_bytes(&r, xyz, 3);
	cr_assert(memcmp(xyz, "xyz", 3) == 0);
	cr_assert_eq(codec_get_count(&r, 4), 2);
	(void)codec_get_u32(&r);
	cr_assert_eq(codec_end(&r, "test", NULL), ERR_PROTO);
	(void)codec_get_u32(&r);
	cr_assert_eq(codec_end(&r, "test", NULL), ERR_OK);
	buf_done(&b);
}

Test(codec, refuses_what_is_cut_or_false)
{
	static const struct {
		const char *name;
		struct str bytes;
		char get;
	} rows[] = {
	    {"u8", STR_INIT(""), '1'},
	    {"u32", STR_INIT("\1\2\3"), '4'},
	    {"u64", STR_INIT("\1\2\3\4\5\6\7"), '8'},
	    {"bool of 2", STR_INIT("\2"), 'b'},
	    {"length cut", STR_INIT("\1\0\0"), 's'},
	    {"text cut", STR_INIT("\5\0\0\0abcd"), 's'},
	    {"huge length", STR_INIT("\xfe\xff\xff\xff"), 's'},
	    {"count over the rest", STR_INIT("\3\0\0\0abcdefgh"), 'c'},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct codec_reader r = codec_reader(rows[i].bytes);
		switch (rows[i].get) {
		case '1':
			cr_assert_eq(codec_get_u8(&r), 0);
			break;
		case '4':
			cr_assert_eq(codec_get_u32(&r), 0);
			break;
		case '8':
			cr_assert_eq(codec_get_u64(&r), 0);
			break;
		case 'b':
			cr_assert_not(codec_get_bool(&r));
			break;
		case 's':
			cr_assert_null(codec_get_str(&r).ptr);
			break;
		default:
			cr_assert_eq(codec_get_count(&r, 4), 0);
		}
		cr_assert(r.failed, "%s", rows[i].name);
		cr_assert_eq(
		    codec_get_u64(&r), 0, "%s: a failed reader stays failed", rows[i].name);
		cr_assert_eq(codec_end(&r, "test", NULL), ERR_PROTO, "%s", rows[i].name);
	}
}

static struct build_result
sample(void)
{
	return (struct build_result){.ok = true,
	    .failure = STR_NULL,
	    .warnings = STR("a warning"),
	    .generation = 9,
	    .has_conf = true,
	    .conf = {.host = STR("127.0.0.1"),
		.state_dir = STR("/var/lib/otari"),
		.port = 8000,
		.workers = 2,
		.log_json = true,
		.sandbox = {.url = STR("local:"), .memory_bytes = 1u << 30, .uid_base = 1000000}},
	    .db_policy = 3,
	    .db_keys = 4,
	    .keys_count = 5,
	    .keys_is_delta = true,
	    .fds = {BUILD_FD_POLICY, BUILD_FD_KEYS},
	    .nfds = 2};
}

Test(codec, carries_the_result_of_a_build)
{
	struct arena *a = arena_new(65536);
	struct buf b = BUF_INIT(LIMIT_MSG_BYTES);
	struct build_result in = sample(), out;
	struct err e = {0};
	build_result_encode(&in, &b);
	cr_assert_eq(build_result_decode(a, buf_str(&b), &out, &e), ERR_OK, "%s", e.msg);
	cr_assert(out.ok && out.keys_is_delta && out.nfds == 2 && out.fds[1] == BUILD_FD_KEYS);
	cr_assert_null(out.failure.ptr);
	cr_assert(str_eq(out.warnings, STR("a warning")));
	cr_assert(
	    str_eq(out.conf.sandbox.url, STR("local:")) && out.conf.sandbox.uid_base == 1000000);
	cr_assert_eq(out.conf.port, 8000);
	for (size_t cut = 0; cut < b.len; cut++)
		cr_assert_eq(build_result_decode(a, str_n(b.ptr, cut), &out, NULL), ERR_PROTO,
		    "cut at %zu", cut);
	buf_done(&b);
	arena_free(&a);
}

Test(codec, keeps_the_result_under_the_message_limit)
{
	struct buf text = BUF_INIT(1 << 20), b = BUF_INIT(LIMIT_MSG_BYTES);
	for (int i = 0; i < 100000; i++)
		buf_addc(&text, 'x');
	struct build_result in = sample();
	in.failure = in.warnings = buf_str(&text);
	build_result_encode(&in, &b);
	cr_assert_not(b.overflowed);
	buf_done(&b);
	buf_done(&text);
}

Test(codec, carries_requests_and_files)
{
	struct arena *a = arena_new(65536);
	struct buf b = BUF_INIT(LIMIT_MSG_BYTES);
	struct build_request in = {.what = BUILD_POLICY | BUILD_KEYS,
	    .generation = 5,
	    .conf_path = STR("otari.conf"),
	    .cwd = STR("/srv"),
	    .first = true,
	    .keys_since = 77};
	struct build_request out;
	build_request_encode(&in, &b);
	cr_assert_eq(build_request_decode(a, buf_str(&b), &out, NULL), ERR_OK);
	cr_assert(out.first && !out.as_root && out.keys_since == 77 && str_eq(out.cwd, in.cwd));
	buf_clear(&b);
	in.what = 64;
	build_request_encode(&in, &b);
	cr_assert_eq(build_request_decode(a, buf_str(&b), &out, NULL), ERR_PROTO);
	struct build_file file, wanted[] = {{BUILD_FILE_READ, STR("/etc/key")}, {9, STR("/x")},
				    {BUILD_FILE_READ, STR("")}, {BUILD_FILE_READ, STR("a\0b")}};
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		buf_clear(&b);
		build_file_encode(&wanted[i], &b);
		cr_assert_eq(build_file_decode(a, buf_str(&b), &file, NULL),
		    i == 0 ? ERR_OK : ERR_PROTO, "row %zu", i);
	}
	buf_done(&b);
	arena_free(&a);
}
