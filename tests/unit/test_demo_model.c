#include <string.h>

#include <criterion/criterion.h>

#include "tools/demo-model/script.h"

#define CODE_TOOL                                                                                  \
	"[{\"type\":\"function\",\"function\":{\"name\":\"code_execution\",\"parameters\":"        \
	"{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\"}}}}}]"
#define OTHER_TOOL                                                                                 \
	"[{\"type\":\"function\",\"function\":{\"name\":\"get_time\",\"parameters\":"              \
	"{\"type\":\"object\",\"properties\":{\"zone\":{\"type\":\"string\"}}}}}]"
#define RENAMED_TOOL                                                                               \
	"[{\"type\":\"function\",\"function\":{\"name\":\"run_python\",\"parameters\":"            \
	"{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\"}}}}}]"

static void
answer(struct answer *a, const char *messages, const char *tools)
{
	json_t *body = json_pack("{s:o?, s:o?}", "messages", json_loads(messages, 0, NULL), "tools",
	    tools != NULL ? json_loads(tools, 0, NULL) : NULL);
	struct talk t;

	cr_assert(json_is_array(json_object_get(body, "messages")), "%s", messages);
	talk_read(&t, body);
	answer_init(a, "x-", STR("m"));
	script_answer(a, &t, true, false);
	talk_done(&t);
	json_decref(body);
}

Test(demo_model, calls_when_it_should, .timeout = 20)
{
	static const struct {
		const char *messages, *tools, *called, *in_code, *in_text;
	} rows[] = {
	    {"[{\"role\":\"user\",\"content\":\"Hello\"}]", CODE_TOOL, NULL, NULL, "Hello"},
	    {"[{\"role\":\"user\",\"content\":\"Compute 2 * 21\"}]", CODE_TOOL, "code_execution",
		"print(2 * 21)", NULL},
	    {"[{\"role\":\"user\",\"content\":\"Compute 2 * 21\"}]", NULL, NULL, NULL, "2 * 21"},
	    {"[{\"role\":\"user\",\"content\":\"Compute 2 * 21\"}]", OTHER_TOOL, NULL, NULL,
		"2 * 21"},
	    {"[{\"role\":\"user\",\"content\":\"Sum the numbers from 1 to 10\"}]", RENAMED_TOOL,
		"run_python", "range(1, 10 + 1)", NULL},
	    {"[{\"role\":\"user\",\"content\":\"the sum of the first 50 primes\"}]", CODE_TOOL,
		"code_execution", "count = 50", NULL},
	    {"[{\"role\":\"user\",\"content\":\"run: print('x')\"}]", CODE_TOOL, "code_execution",
		"print('x')", NULL},
	    {"[{\"role\":\"user\",\"content\":\"a chart of sales-2.csv please\"}]", CODE_TOOL,
		"code_execution", "wanted = \\\"sales-2.csv\\\"", NULL},
	    /* The name only in the marker that a gateway adds. */
	    {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Draw it\"},"
	     "{\"type\":\"text\",\"text\":\"[attached: a_b.csv]\"}]}]",
		CODE_TOOL, "code_execution", "wanted = \\\"a_b.csv\\\"", NULL},
	    {"[{\"role\":\"system\",\"content\":\"files: q.csv\"},"
	     "{\"role\":\"user\",\"content\":\"Draw a chart\"}]",
		CODE_TOOL, "code_execution", "wanted = \\\"q.csv\\\"", NULL},
	    {"[{\"role\":\"user\",\"content\":\"chart a.csv\"},"
	     "{\"role\":\"tool\",\"content\":\"stdout:\\n4 rows\\nfiles: chart.svg (file_id: "
	     "file-1)\"}]",
		CODE_TOOL, NULL, NULL, "chart.svg (file_id: file-1)"},
	    {"[{\"role\":\"user\",\"content\":\"compute\"},"
	     "{\"role\":\"tool\",\"content\":\"stdout:\\n408\\n\"}]",
		CODE_TOOL, NULL, NULL, "printed: 408"},
	    {"[{\"role\":\"user\",\"content\":\"compute\"},"
	     "{\"role\":\"tool\",\"content\":\"[tool error] stderr:\\nNameError\"}]",
		CODE_TOOL, NULL, NULL, "failed"},
	    /* A result of an earlier turn is no answer to this one. */
	    {"[{\"role\":\"user\",\"content\":\"compute\"},{\"role\":\"tool\",\"content\":\"1\"},"
	     "{\"role\":\"user\",\"content\":\"Thank you\"}]",
		CODE_TOOL, NULL, NULL, "Thank you"},
	    {"[]", CODE_TOOL, NULL, NULL, "demo model"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct answer a;

		answer(&a, rows[i].messages, rows[i].tools);
		if (rows[i].called != NULL) {
			cr_assert_eq(a.call_count, 1, "row %zu", i);
			cr_expect_str_eq(a.calls[0].name, rows[i].called, "row %zu", i);
			cr_expect(strstr(a.calls[0].arguments.ptr, rows[i].in_code) != NULL,
			    "row %zu: %s", i, a.calls[0].arguments.ptr);
		} else {
			cr_expect_eq(a.call_count, 0, "row %zu", i);
			cr_expect(strstr(a.text.ptr, rows[i].in_text) != NULL, "row %zu: %s", i,
			    a.text.ptr);
		}
		answer_done(&a);
	}
}

Test(demo_model, fragments_never_cut_a_character, .timeout = 20)
{
	struct str rest = STR("a\u00e9\u20ac\U0001f600b"), piece;
	size_t total = 0, count = 0;

	while (answer_fragment(&rest, 2, &piece)) {
		cr_expect(((unsigned char)piece.ptr[0] & 0xc0) != 0x80);
		total += piece.len;
		count++;
	}
	cr_expect_eq(total, 11);
	cr_expect(count >= 3);
}
