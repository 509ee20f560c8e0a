#include <string.h>

#include <criterion/criterion.h>

#include "ipc/msg.h"
#include "ipc/payload.h"

Test(msg, every_type_has_a_name_and_a_sender)
{
	for (uint32_t t = 1; t < MSG_TYPE_MAX; t++) {
		cr_assert_not_null(msg_info(t));
		cr_expect_not_null(msg_info(t)->name, "type %u", t);
		cr_expect_neq(msg_info(t)->senders, 0, "type %u", t);
	}
	cr_assert_null(msg_info(0));
	cr_assert_null(msg_info(MSG_TYPE_MAX));
	cr_assert_str_eq(msg_name(MSG_TYPE_MAX), "unknown");
	cr_assert_str_eq(msg_name(MSG_DRAIN), "drain");
}

Test(payload, come_back_as_they_were_packed)
{
	struct buf b = BUF_INIT(8192);
	struct hello h = {2, 7, 99, STR("0.1.0")}, h2;
	hello_encode(&b, &h);
	cr_assert_eq(hello_decode(buf_str(&b), &h2, NULL), ERR_OK);
	cr_assert(
	    h2.role == 2 && h2.number == 7 && h2.pid == 99 && str_eq(h2.build_id, STR("0.1.0")));
	buf_clear(&b);
	struct snapshot_note n = {1ull << 40, true, false}, n2;
	snapshot_note_encode(&b, &n);
	cr_assert_eq(snapshot_note_decode(buf_str(&b), &n2, NULL), ERR_OK);
	cr_assert(n2.generation == 1ull << 40 && n2.is_delta && !n2.is_last);
	buf_clear(&b);
	struct publish_ask a = {SEG_KEYS, 5, 6}, a2;
	publish_ask_encode(&b, &a);
	cr_assert_eq(publish_ask_decode(buf_str(&b), &a2, NULL), ERR_OK);
	cr_assert(a2.what == SEG_KEYS && a2.db_policy == 5 && a2.db_keys == 6);
	buf_clear(&b);
	static char text[9000];
	memset(text, 'x', sizeof(text));
	struct published p = {false, {text, sizeof(text)}}, p2;
	published_encode(&b, &p);
	cr_assert_eq(published_decode(buf_str(&b), &p2, NULL), ERR_OK);
	cr_assert_eq(p2.error.len, PUBLISHED_TEXT_MAX, "a long text is cut to fit");
	cr_assert_leq(b.len, msg_info(MSG_PUBLISHED)->max_bytes);
	buf_clear(&b);
	struct tried t = {true, {text, sizeof(text)}}, t2;
	tried_encode(&b, &t);
	cr_assert_eq(tried_decode(buf_str(&b), &t2, NULL), ERR_OK);
	cr_assert(t2.ok && t2.text.len == PUBLISHED_TEXT_MAX);
	cr_assert_leq(b.len, msg_info(MSG_TRIED)->max_bytes);
	buf_clear(&b);
	struct listen_note l = {3, false, true, true}, l2;
	listen_note_encode(&b, &l);
	cr_assert_eq(listen_note_decode(buf_str(&b), &l2, NULL), ERR_OK);
	cr_assert(l2.listener == 3 && !l2.is_admin && l2.is_tls && l2.is_serve);
	buf_done(&b);
}

Test(payload, refuse_what_is_cut_or_too_long)
{
	struct buf b = BUF_INIT(256);
	struct publish_ask a = {SEG_BOTH, 1, 2}, a2;
	publish_ask_encode(&b, &a);
	for (size_t n = 0; n < b.len; n++)
		cr_expect_eq(
		    publish_ask_decode(str_n(b.ptr, n), &a2, NULL), ERR_PROTO, "cut at %zu", n);
	buf_addc(&b, 'x');
	cr_assert_eq(publish_ask_decode(buf_str(&b), &a2, NULL), ERR_PROTO);
	buf_clear(&b);
	a.what = 4;
	publish_ask_encode(&b, &a);
	cr_assert_eq(publish_ask_decode(buf_str(&b), &a2, NULL), ERR_PROTO);
	buf_done(&b);
}
