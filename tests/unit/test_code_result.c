/* The result blocks of Messages, one for each kind of execution. */
#include <criterion/criterion.h>

#include "worker/dialect/code_list.h"
#include "worker/dialect/messages_reply.h"

TestSuite(code_result, .timeout = 10);

#define ID ",\"tool_use_id\":\"otari_srvtoolu_1\",\"content\":"

static void
expect(struct code_record rec, const char *want)
{
	struct buf b = BUF_INIT(4096);
	struct jw w;

	rec.id = STR("otari_srvtoolu_1");
	jw_init(&w, &b);
	messages_write_code_result(&w, &rec);
	cr_expect_str_eq(b.ptr, want);
	buf_done(&b);
}

Test(code_result, bash_has_the_shape_of_python_in_its_own_words)
{
	struct str ids[] = {STR("file-1")};

	expect((struct code_record){.tool = CODE_TOOL_BASH,
		   .ran = true,
		   .out = STR("a\n"),
		   .err = STR("w"),
		   .return_code = 2,
		   .file_ids = ids,
		   .file_count = 1},
	    "{\"type\":\"bash_code_execution_tool_result\"" ID
	    "{\"type\":\"bash_code_execution_result\",\"stdout\":\"a\\n\",\"stderr\":\"w\","
	    "\"return_code\":2,\"content\":[{\"type\":\"bash_code_execution_output\","
	    "\"file_id\":\"file-1\"}]}}");
}

Test(code_result, the_editor_says_what_it_did)
{
	struct code_record view = {.tool = CODE_TOOL_EDITOR,
	    .ran = true,
	    .out = STR("b\nc\n"),
	    .edit = {.first_line = 2, .line_count = 2, .total_lines = 9}};
	struct code_record create = {.tool = CODE_TOOL_EDITOR,
	    .ran = true,
	    .edit = {.answer = EDIT_ANSWER_CREATE, .is_update = true}};
	struct code_record replace = {.tool = CODE_TOOL_EDITOR,
	    .ran = true,
	    .out = STR("-a\n+b\n+\n"),
	    .edit = {.answer = EDIT_ANSWER_REPLACE,
		.old_start = 4,
		.old_lines = 1,
		.new_start = 4,
		.new_lines = 2}};

	expect(view,
	    "{\"type\":\"text_editor_code_execution_tool_result\"" ID
	    "{\"type\":\"text_editor_code_execution_view_result\",\"file_type\":\"text\","
	    "\"content\":\"b\\nc\\n\",\"num_lines\":2,\"start_line\":2,\"total_lines\":9}}");
	view.edit.is_directory = true;
	expect(view, "{\"type\":\"text_editor_code_execution_tool_result\"" ID
		     "{\"type\":\"text_editor_code_execution_view_result\",\"file_type\":\"text\","
		     "\"content\":\"b\\nc\\n\",\"num_lines\":null,\"start_line\":null,"
		     "\"total_lines\":null}}");
	expect(create,
	    "{\"type\":\"text_editor_code_execution_tool_result\"" ID
	    "{\"type\":\"text_editor_code_execution_create_result\",\"is_file_update\":true}}");
	expect(replace,
	    "{\"type\":\"text_editor_code_execution_tool_result\"" ID
	    "{\"type\":\"text_editor_code_execution_str_replace_result\",\"old_start\":4,"
	    "\"old_lines\":1,\"new_start\":4,\"new_lines\":2,"
	    "\"lines\":[\"-a\",\"+b\",\"+\"]}}");
	replace.edit.is_cut = true;
	expect(replace,
	    "{\"type\":\"text_editor_code_execution_tool_result\"" ID
	    "{\"type\":\"text_editor_code_execution_str_replace_result\",\"old_start\":4,"
	    "\"old_lines\":1,\"new_start\":4,\"new_lines\":2,\"lines\":null}}");
}

Test(code_result, every_kind_has_an_error_of_its_own)
{
	expect((struct code_record){.tool = CODE_TOOL_PYTHON},
	    "{\"type\":\"code_execution_tool_result\"" ID
	    "{\"type\":\"code_execution_tool_result_error\",\"error_code\":\"unavailable\"}}");
	expect((struct code_record){.tool = CODE_TOOL_BASH,
		   .error_code = STR("invalid_tool_input"),
		   .error_message = STR("why")},
	    "{\"type\":\"bash_code_execution_tool_result\"" ID
	    "{\"type\":\"bash_code_execution_tool_result_error\","
	    "\"error_code\":\"invalid_tool_input\"}}");
	expect((struct code_record){.tool = CODE_TOOL_EDITOR,
		   .error_code = STR("file_not_found"),
		   .error_message = STR("a: there is no such file")},
	    "{\"type\":\"text_editor_code_execution_tool_result\"" ID
	    "{\"type\":\"text_editor_code_execution_tool_result_error\","
	    "\"error_code\":\"file_not_found\",\"error_message\":\"a: there is no such "
	    "file\"}}");
	expect((struct code_record){.tool = CODE_TOOL_EDITOR},
	    "{\"type\":\"text_editor_code_execution_tool_result\"" ID
	    "{\"type\":\"text_editor_code_execution_tool_result_error\","
	    "\"error_code\":\"unavailable\",\"error_message\":null}}");
}

/* Where a dialect has no blocks for it. */
Test(code_result, every_kind_is_listed_alike)
{
	struct buf list = BUF_INIT(4096);

	code_list_add(&list, &(struct code_record){.id = STR("otari_srvtoolu_1"),
				 .tool = CODE_TOOL_BASH,
				 .input_raw = STR("{\"command\":\"ls\"}"),
				 .ran = true,
				 .out = STR("a\n"),
				 .return_code = 1});
	code_list_add(&list, &(struct code_record){.id = STR("otari_srvtoolu_2"),
				 .tool = CODE_TOOL_EDITOR,
				 .input_raw = STR("{}"),
				 .error_code = STR("file_not_found"),
				 .error_message = STR("a: there is no such file")});
	cr_expect_str_eq(list.ptr,
	    "{\"id\":\"otari_srvtoolu_1\",\"tool\":\"bash_code_execution\",\"input\":"
	    "{\"command\":\"ls\"},\"stdout\":\"a\\n\",\"stderr\":\"\",\"return_code\":1,"
	    "\"files\":[],\"error_code\":null},"
	    "{\"id\":\"otari_srvtoolu_2\",\"tool\":\"text_editor_code_execution\",\"input\":{},"
	    "\"stdout\":\"\",\"stderr\":\"\",\"return_code\":0,\"files\":[],"
	    "\"error_code\":\"file_not_found\",\"error_message\":\"a: there is no such file\"}");
	buf_done(&list);
}

Test(code_result, kinds_have_the_providers_names)
{
	for (int i = 0; i < CODE_TOOL_COUNT; i++) {
		enum code_tool back;
		cr_expect(code_tool_of(code_tool_name((enum code_tool)i), &back));
		cr_expect_eq((int)back, i);
	}
	enum code_tool none;
	cr_expect(!code_tool_of(STR("code_execution_2"), &none));
}
