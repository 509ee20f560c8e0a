/* The code-execution policy and the tool settings as the API reads and writes them. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "conf/validate.h"
#include "worker/api/policy_body.h"
#include "worker/api/tool_setting.h"

TestSuite(policy_body, .timeout = 20);

static struct str image = STR_INIT("python:3.12");
static const struct policy_images images = {&image, 1};

static enum err_code
read_text(struct arena *a, const char *text, struct store_policy *p, struct err *e)
{
	json_t *o = json_loads(text, 0, NULL);
	cr_assert_not_null(o, "%s", text);
	enum err_code rc = policy_body_read(a, o, &images, p, e);
	json_decref(o);
	return rc;
}

static const char *
shown(struct str s)
{
	return s.ptr != NULL ? s.ptr : "-";
}

Test(policy_body, whole_policies_are_read)
{
	static const struct {
		const char *body, *executor, *hint, *image, *tools;
		bool enabled;
		int iterations, seconds;
	} rows[] = {
	    {"{'enabled':true}", "-", "-", "-", "-", true, 0, 0},
	    {"{'enabled':false,'executor':null,'default_purpose_hint':null,'max_iterations':null,"
	     "'exec_timeout_s':null,'image':null,'tools':null}",
		"-", "-", "-", "-", false, 0, 0},
	    /* 17, 35: padded, any case, blank */
	    {"{'enabled':true,'executor':' OTARI '}", "otari", "-", "-", "-", true, 0, 0},
	    {"{'enabled':true,'executor':'\\tProvider\\n'}", "provider", "-", "-", "-", true, 0, 0},
	    {"{'enabled':true,'executor':'auto'}", "auto", "-", "-", "-", true, 0, 0},
	    {"{'enabled':true,'executor':'  ','image':' ','default_purpose_hint':' \\n '}", "-",
		"-", "-", "-", true, 0, 0},
	    {"{'enabled':true,'executor':''}", "-", "-", "-", "-", true, 0, 0},
	    {"{'enabled':true,'max_iterations':1,'exec_timeout_s':60}", "-", "-", "-", "-", true, 1,
		60},
	    {"{'enabled':true,'max_iterations':25,'exec_timeout_s':1}", "-", "-", "-", "-", true,
		25, 1},
	    {"{'enabled':true,'default_purpose_hint':' for sums ','image':' python:3.12 '}", "-",
		" for sums ", "python:3.12", "-", true, 0, 0},
	    {"{'enabled':true,'tools':['bash_code_execution','code_execution',"
	     "'bash_code_execution']}",
		"-", "-", "-", "[\"code_execution\",\"bash_code_execution\"]", true, 0, 0},
	    /* the answer, sent back */
	    {"{'enabled':true,'workspace_id':'x','configured':true,'sandbox_configured':true,"
	     "'created_at':null,'updated_at':null,'allowed_images':[],'available_tools':[],"
	     "'declared_in':null}",
		"-", "-", "-", "-", true, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		char body[512];
		struct err e = {0};
		struct store_policy p;
		cr_assert(str_copy(body, sizeof(body), str_c(rows[i].body)));
		for (char *c = body; *c != '\0'; c++)
			if (*c == '\'')
				*c = '"';
		cr_assert_eq(read_text(a, body, &p, &e), ERR_OK, "%s: %s", body, e.msg);
		cr_expect_str_eq(shown(p.executor), rows[i].executor, "%s", body);
		cr_expect_str_eq(shown(p.default_purpose_hint), rows[i].hint, "%s", body);
		cr_expect_str_eq(shown(p.image), rows[i].image, "%s", body);
		cr_expect_str_eq(shown(p.tools_json), rows[i].tools, "%s", body);
		cr_expect_eq(p.enabled, rows[i].enabled, "%s", body);
		cr_expect_eq(p.max_iterations, rows[i].iterations, "%s", body);
		cr_expect_eq(p.exec_timeout_s, rows[i].seconds, "%s", body);
		arena_free(&a);
	}
}

Test(policy_body, every_refusal_names_its_member)
{
	static const struct {
		const char *body, *says;
	} rows[] = {
	    {"{}", "enabled: is required"},
	    {"{\"enabled\":null}", "enabled: "},
	    {"{\"enabled\":1}", "enabled: "},
	    {"{\"enabled\":\"true\"}", "enabled: "},
	    /* 18, 35 */
	    {"{\"enabled\":true,\"executor\":\"anthropic\"}", "executor: must be one of "},
	    {"{\"enabled\":true,\"executor\":7}", "executor: "},
	    {"{\"enabled\":true,\"executor\":[\"auto\"]}", "executor: "},
	    {"{\"enabled\":true,\"executor\":\"otari provider\"}", "executor: "},
	    /* 122: over the ceiling */
	    {"{\"enabled\":true,\"max_iterations\":0}", "max_iterations: must be from 1 to 25"},
	    {"{\"enabled\":true,\"max_iterations\":26}", "max_iterations: must be from 1 to 25"},
	    {"{\"enabled\":true,\"max_iterations\":-1}", "max_iterations: "},
	    {"{\"enabled\":true,\"max_iterations\":2.5}", "max_iterations: "},
	    {"{\"enabled\":true,\"max_iterations\":\"5\"}", "max_iterations: "},
	    {"{\"enabled\":true,\"max_iterations\":true}", "max_iterations: "},
	    {"{\"enabled\":true,\"max_iterations\":9223372036854775807}", "max_iterations: "},
	    {"{\"enabled\":true,\"exec_timeout_s\":0}", "exec_timeout_s: must be from 1 to 60"},
	    {"{\"enabled\":true,\"exec_timeout_s\":61}", "exec_timeout_s: must be from 1 to 60"},
	    {"{\"enabled\":true,\"image\":\"ruby\"}", "image: "},
	    {"{\"enabled\":true,\"image\":{}}", "image: "},
	    {"{\"enabled\":true,\"default_purpose_hint\":5}", "default_purpose_hint: "},
	    {"{\"enabled\":true,\"tools\":[]}", "tools: is empty"},
	    {"{\"enabled\":true,\"tools\":\"code_execution\"}", "tools: "},
	    {"{\"enabled\":true,\"tools\":[\"rockets\"]}", "tools: must be code_execution"},
	    {"{\"enabled\":true,\"tools\":[\"code_execution\",null]}", "tools: "},
	    {"{\"enabled\":true,\"max_iteration\":5}", "max_iteration: is no member"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		struct err e = {0};
		struct store_policy p;
		cr_assert_eq(read_text(a, rows[i].body, &p, &e), ERR_INPUT, "%s", rows[i].body);
		cr_expect(strncmp(e.msg, rows[i].says, strlen(rows[i].says)) == 0, "%s: %s",
		    rows[i].body, e.msg);
		arena_free(&a);
	}
}

Test(policy_body, a_hint_is_measured_in_characters)
{
	for (size_t extra = 0; extra < 2; extra++) {
		struct arena *a = arena_new(1 << 16);
		struct buf hint = BUF_INIT(1 << 16);
		struct err e = {0};
		struct store_policy p;
		for (size_t i = 0; i < POLICY_HINT_CHARS + extra; i++)
			buf_add(&hint, STR("\xf0\x9f\x90\x99"));
		json_t *o = json_pack("{s:b, s:s}", "enabled", 1, "default_purpose_hint", hint.ptr);
		enum err_code rc = policy_body_read(a, o, &images, &p, &e);
		cr_expect_eq(rc, extra == 0 ? ERR_OK : ERR_INPUT);
		cr_expect(extra == 0 || strstr(e.msg, "default_purpose_hint: ") == e.msg);
		json_decref(o);
		buf_done(&hint);
		arena_free(&a);
	}
}

static json_t *
written(const struct policy_view *v)
{
	struct buf body = BUF_INIT(1 << 16);
	struct jw w;
	jw_init(&w, &body);
	policy_body_write(&w, v);
	json_t *o = json_loadb(body.ptr, body.len, 0, NULL);
	cr_assert_not_null(o, "%s", body.ptr);
	buf_done(&body);
	return o;
}

Test(policy_body, the_answer_has_one_shape)
{
	static const char *const members[] = {"workspace_id", "configured", "sandbox_configured",
	    "enabled", "default_purpose_hint", "max_iterations", "exec_timeout_s", "executor",
	    "image", "tools", "created_at", "updated_at", "allowed_images", "available_tools",
	    "declared_in"};
	struct policy_view v = {.workspace_id = STR("w"), .images = images};
	json_t *o = written(&v);
	cr_assert_eq(json_object_size(o), ARRAY_LEN(members));
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		cr_assert_not_null(json_object_get(o, members[i]), "%s", members[i]);
	/* 122: what is not configured is allowed */
	cr_expect(json_is_false(json_object_get(o, "configured")));
	cr_expect(json_is_true(json_object_get(o, "enabled")));
	for (size_t i = 4; i < 12; i++)
		cr_expect(json_is_null(json_object_get(o, members[i])), "%s", members[i]);
	cr_expect_eq(json_array_size(json_object_get(o, "available_tools")), 3);
	cr_expect_eq(json_array_size(json_object_get(o, "allowed_images")), 1);
	json_decref(o);

	v = (struct policy_view){.workspace_id = STR("w"),
	    .is_configured = true,
	    .has_sandbox = true,
	    .policy = {.executor = STR("otari"),
		.max_iterations = 3,
		.exec_timeout_s = 4,
		.default_purpose_hint = STR("say \"hi\""),
		.tools_json = STR("[\"rockets\", 5, \"code_execution\"]"),
		.created_at_s = 1,
		.updated_at_s = 2},
	    .declared_in = STR("otari.conf:7")};
	o = written(&v);
	cr_expect(json_is_false(json_object_get(o, "enabled")));
	cr_expect_str_eq(json_string_value(json_object_get(o, "executor")), "otari");
	cr_expect_str_eq(
	    json_string_value(json_object_get(o, "default_purpose_hint")), "say \"hi\"");
	cr_expect_eq(json_integer_value(json_object_get(o, "max_iterations")), 3);
	cr_expect_eq(json_integer_value(json_object_get(o, "exec_timeout_s")), 4);
	cr_expect_eq(json_array_size(json_object_get(o, "tools")), 1, "as it counts");
	cr_expect_str_eq(
	    json_string_value(json_object_get(o, "updated_at")), "1970-01-01T00:00:02Z");
	cr_expect_str_eq(json_string_value(json_object_get(o, "declared_in")), "otari.conf:7");
	json_decref(o);
	v.policy.tools_json = STR("no list");
	o = written(&v);
	cr_expect_eq(json_array_size(json_object_get(o, "tools")), 0);
	json_decref(o);
}

/* 34 */
Test(policy_body, tool_settings_are_read)
{
	static const struct {
		const char *key, *value; /* JSON */
		const char *out;         /* NULL: refused; "-": cleared */
	} rows[] = {
	    {"code_execution_executor", "\" OTARI \"", "otari"},
	    {"code_execution_executor", "\"provider\"", "provider"},
	    {"code_execution_executor", "\"\"", "-"},
	    {"code_execution_executor", "\"  \"", "-"},
	    {"code_execution_executor", "null", "-"},
	    {"code_execution_executor", "\"anthropic\"", NULL},
	    {"code_execution_executor", "3", NULL},
	    {"code_execution_executor", "{}", NULL},
	    {"sandbox_purpose_hint", "\"for sums\"", "for sums"},
	    {"sandbox_purpose_hint", "\"\\n\"", "-"},
	    {"sandbox_purpose_hint", "true", NULL},
	    {"tools_header", "\"Your tools:\"", "Your tools:"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		struct err e = {0};
		struct store_setting got;
		json_t *v = json_loads(rows[i].value, JSON_DECODE_ANY, NULL);
		const struct tool_setting *t = tool_setting_find(rows[i].key);
		cr_assert_not_null(t);
		enum err_code rc = tool_setting_read(a, t, v, &got, &e);
		json_decref(v);
		cr_assert_eq(rc, rows[i].out != NULL ? ERR_OK : ERR_INPUT, "%s", rows[i].value);
		if (rows[i].out != NULL)
			cr_expect_str_eq(shown(got.value), rows[i].out, "%s", rows[i].value);
		if (rows[i].out == NULL && t->options != NULL && rows[i].value[0] == '"')
			cr_expect_not_null(strstr(e.msg, "must be one of"), "%s", e.msg);
		arena_free(&a);
	}
	cr_assert_null(tool_setting_find("sandbox_python"));
	cr_assert_null(tool_setting_find("sandbox_url")->options);
	cr_assert_str_eq(tool_setting_find("code_execution_executor")->options[2], "provider");
}
