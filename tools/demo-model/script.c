#include "tools/demo-model/script.h"

#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "tools/demo-model/chart_py.h"

#define CODE_MAX  (256u * 1024u)
#define QUOTE_MAX 400u /* bytes of a prompt or a result that an answer repeats */

/* First match of a case-blind extended expression; group is what is returned. */
static bool
find(const struct buf *text, const char *pattern, size_t group, struct str *ret)
{
	regex_t re;
	regmatch_t m[4];
	bool hit = false;

	if (text->len == 0 || regcomp(&re, pattern, REG_EXTENDED | REG_ICASE) != 0)
		return false;
	if (regexec(&re, text->ptr, ARRAY_LEN(m), m, 0) == 0 && m[group].rm_so >= 0) {
		hit = true;
		if (ret != NULL)
			*ret = str_n(
			    text->ptr + m[group].rm_so, (size_t)(m[group].rm_eo - m[group].rm_so));
	}
	regfree(&re);
	return hit;
}

static bool
asks(const struct buf *text, const char *pattern)
{
	return find(text, pattern, 0, NULL);
}

#define DATA_NAME "([[:alnum:]_][[:alnum:]_.-]*\\.(csv|tsv))"
#define WORDS_DATA                                                                                 \
	"(^|[^[:alpha:]])(csv|tsv|chart|plot|draw|graph|diagram|data ?(file|set)|attached)"        \
	"([^[:alpha:]]|$)"
#define WORDS_COMPUTE                                                                              \
	"(^|[^[:alpha:]])(compute|calculate|computation|sum|product|run|execute|python|code|prime" \
	"|factorial|fibonacci|how much is|how many)([^[:alpha:]]|$)"
#define EXPRESSION  "[0-9(][0-9 .()]*([-+*/%]+[0-9 .()]+)+"
#define RANGE       "([0-9]+) *(to|through|until|-) *([0-9]+)"
#define FIRST_COUNT "first +([0-9]+)"

/* The program between ``` fences, or after "run:" to the end. */
static bool
given_code(const struct buf *text, struct str *ret)
{
	struct str s = buf_str(text), open = STR("```"), run = STR("run:");
	size_t at = str_find(s, open);

	if (at != SIZE_MAX) {
		struct str rest = str_from(s, at + open.len);
		size_t line = str_chr(rest, '\n'), end;

		rest = str_from(rest, line == SIZE_MAX ? 0 : line + 1);
		end = str_find(rest, open);
		*ret = str_sub(rest, 0, end == SIZE_MAX ? rest.len : end);
		return true;
	}
	at = str_find(s, run);
	if (at == SIZE_MAX)
		return false;
	*ret = str_trim(str_from(s, at + run.len));
	return true;
}

static void
write_computation(struct buf *code, const struct talk *t)
{
	struct str piece, last;

	if (given_code(&t->user, &piece)) {
		buf_add(code, piece);
	} else if (find(&t->user, EXPRESSION, 0, &piece)) {
		buf_printf(code, "print(%.*s)\n", STR_FMT(str_trim(piece)));
	} else if (find(&t->user, RANGE, 1, &piece) && find(&t->user, RANGE, 3, &last)) {
		buf_printf(
		    code, "print(sum(range(%.*s, %.*s + 1)))\n", STR_FMT(piece), STR_FMT(last));
	} else {
		if (!find(&t->user, FIRST_COUNT, 1, &piece))
			piece = STR("20");
		buf_printf(code,
		    "count = %.*s\nprimes, n = [], 2\nwhile len(primes) < count:\n"
		    "    if all(n %% p for p in primes):\n        primes.append(n)\n    n += 1\n"
		    "print(sum(primes))\nprint(\"primes:\", *primes)\n",
		    STR_FMT(piece));
	}
}

static void
write_chart(struct buf *code, const struct talk *t)
{
	struct str name = STR("");

	if (!find(&t->user, DATA_NAME, 1, &name) && !find(&t->users, DATA_NAME, 1, &name))
		(void)find(&t->system, DATA_NAME, 1, &name);
	buf_printf(code, "wanted = \"%.*s\"\n%s", STR_FMT(name), chart_py);
}

/* "stdout:\n" … up to the next section of a tool result. */
static struct str
printed(struct str result)
{
	size_t at = str_find(result, STR("stdout:\n")), end;

	if (at == SIZE_MAX)
		return str_trim(result);
	result = str_from(result, at + strlen("stdout:\n"));
	for (size_t i = 0; i < 3; i++) {
		static const char *const next[] = {"\nstderr:", "\nreturn_code:", "\nfiles:"};

		end = str_find(result, str_c(next[i]));
		if (end != SIZE_MAX)
			result = str_sub(result, 0, end);
	}
	return str_trim(result);
}

static void
tell_result(struct answer *a, const struct talk *t)
{
	struct str result = buf_str(&t->results), out = printed(result), name, id;

	if (str_find(result, STR("[tool error]")) != SIZE_MAX) {
		buf_printf(&a->text, "The program failed. What it said:\n\n%.*s",
		    STR_FMT(str_sub(str_trim(result), 0, 4 * QUOTE_MAX)));
		return;
	}
	if (find(&t->results, "([^ :,\n]+) \\(file_id: ([^)]+)\\)", 1, &name) &&
	    find(&t->results, "([^ :,\n]+) \\(file_id: ([^)]+)\\)", 2, &id)) {
		buf_printf(&a->text, "Here is the chart: %.*s (file_id: %.*s).\n\n", STR_FMT(name),
		    STR_FMT(id));
		buf_printf(&a->text, "What the data says:\n\n%.*s",
		    STR_FMT(str_sub(out, 0, 4 * QUOTE_MAX)));
		return;
	}
	buf_printf(&a->text, "The program printed: %.*s", STR_FMT(str_sub(out, 0, 4 * QUOTE_MAX)));
}

static void
talk_only(struct answer *a, const struct talk *t)
{
	struct str user = str_trim(buf_str(&t->user));

	buf_printf(&a->text,
	    "I am the demo model: a script, not a language model. You wrote: \u201c%.*s%s\u201d. ",
	    STR_FMT(str_sub(user, 0, QUOTE_MAX)), user.len > QUOTE_MAX ? "\u2026" : "");
	buf_add(&a->text,
	    STR("With the code execution tool I compute, and I draw a chart of a CSV file."));
}

void
script_answer(struct answer *a, const struct talk *t, bool may_call, bool must_call)
{
	const bool data = asks(&t->user, DATA_NAME) || asks(&t->user, WORDS_DATA);
	struct buf code = BUF_INIT(CODE_MAX);
	struct answer_call *call;
	struct str given;

	if (t->result_count > 0) {
		tell_result(a, t);
	} else if (t->run_name != NULL && may_call &&
		   (data || must_call || asks(&t->user, WORDS_COMPUTE) ||
		       asks(&t->user, EXPRESSION))) {
		if (data && !given_code(&t->user, &given)) {
			buf_add(&a->text, STR("I will read the file and draw a chart."));
			write_chart(&code, t);
		} else {
			buf_add(&a->text, STR("I will compute that."));
			write_computation(&code, t);
		}
		call = answer_add_call(a, "call_", t->run_name);
		answer_call_code(call, buf_str(&code));
	} else {
		talk_only(a, t);
	}
	buf_done(&code);
}
