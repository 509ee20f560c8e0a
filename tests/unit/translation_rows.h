/* translation_rows.h - what becomes of each piece of a request on every wire: the rows that
 * docs/TRANSLATION.md shows and test_translation.c carries out
 *
 * ' stands for " in all fragments. A fragment is what stands between a section's head and tail; a
 * wanted fragment must stand somewhere in what the provider gets; "dropped NAME" must be named;
 * "refused TEXT" is the answer to the client. "=" is the fragment of the first column.
 */
#ifndef OTARI_TESTS_UNIT_TRANSLATION_ROWS_H
#define OTARI_TESTS_UNIT_TRANSLATION_ROWS_H

#include "worker/dialect/conversation.h"

struct translation_row {
	enum wire from;
	const char *what;
	const char *in;
	const char *want[3]; /* by enum wire; NULL: nothing comes of it */
	bool native;         /* towards OpenAI's own service */
};

struct translation_section {
	const char *title, *text;
	const char *head[3], *tail[3]; /* by enum wire, around the fragment of a client */
	const struct translation_row *rows;
	size_t count;
};

#define C_HEAD "{'model':'m','messages':["
#define M_HEAD "{'model':'m','max_tokens':99,'messages':["
#define R_HEAD "{'model':'m','input':["
#define TAIL   "]}"

static const struct translation_row role_rows[] = {
    {WIRE_MESSAGES, "system text", "'system':'s',",
	{"{'role':'system','content':'s'}", "=", "'instructions':'s'"}, false},
    {WIRE_RESPONSES, "instructions", "'instructions':'s',",
	{"{'role':'system','content':'s'}", "'system':[{'type':'text','text':'s'}]", "="}, false},
};

static const struct translation_row message_rows[] = {
    {WIRE_CHAT, "leading system text", "{'role':'system','content':'s'}",
	{"=", "'system':[{'type':'text','text':'s'}]", "'instructions':'s'"}, false},
    {WIRE_CHAT, "developer text, to servers that know no such role",
	"{'role':'developer','content':'s'}",
	{"{'role':'system','content':'s'}", "'system':[{'type':'text','text':'s'}]",
	    "'instructions':'s'"},
	false},
    {WIRE_CHAT, "later system text",
	"{'role':'user','content':'q'},{'role':'system','content':'s'}",
	{"=", "{'type':'text','text':'System note:'},{'type':'text','text':'s'}",
	    "{'type':'message','role':'system','content':[{'type':'input_text','text':'s'}]}"},
	false},
    {WIRE_RESPONSES, "later system text",
	"{'role':'user','content':'q'},{'role':'system','content':'s'}",
	{"{'role':'user','content':'System note:\\n\\ns'}",
	    "{'type':'text','text':'System note:'},{'type':'text','text':'s'}", "="},
	false},
    {WIRE_CHAT, "the user's text", "{'role':'user','content':'q'}",
	{"=", "{'role':'user','content':[{'type':'text','text':'q'}]}",
	    "{'type':'message','role':'user','content':[{'type':'input_text','text':'q'}]}"},
	false},
    {WIRE_MESSAGES, "the user's text", "{'role':'user','content':'q'}",
	{"{'role':'user','content':'q'}", "=",
	    "{'type':'message','role':'user','content':[{'type':'input_text','text':'q'}]}"},
	false},
    {WIRE_RESPONSES, "the user's text", "{'role':'user','content':'q'}",
	{"{'role':'user','content':'q'}", "{'role':'user','content':[{'type':'text','text':'q'}]}",
	    "="},
	false},
    {WIRE_CHAT, "the model's text", "{'role':'assistant','content':'a'}",
	{"=", "{'role':'assistant','content':[{'type':'text','text':'a'}]}",
	    "{'type':'message','role':'assistant','content':[{'type':'output_text','text':'a'}]}"},
	false},
    {WIRE_RESPONSES, "the model's text",
	"{'type':'message','id':'msg_1','role':'assistant','status':'completed','content':[{'type':"
	"'output_text','text':'a','annotations':[]}]}",
	{"{'role':'assistant','content':'a'}",
	    "{'role':'assistant','content':[{'type':'text','text':'a'}]}", "="},
	false},
    {WIRE_CHAT, "a refusal of the model's", "{'role':'assistant','content':null,'refusal':'no'}",
	{"=", "{'role':'assistant','content':[{'type':'text','text':'no'}]}",
	    "{'type':'message','role':'assistant','content':[{'type':'refusal','refusal':'no'}]}"},
	false},
    {WIRE_RESPONSES, "a refusal of the model's",
	"{'role':'assistant','content':[{'type':'refusal','refusal':'no'}]}",
	{"{'role':'assistant','content':null,'refusal':'no'}",
	    "{'role':'assistant','content':[{'type':'text','text':'no'}]}", "="},
	false},
};

static const struct translation_row chat_part_rows[] = {
    {WIRE_CHAT, "image as data",
	"{'type':'image_url','image_url':{'url':'data:image/png;base64,AA','detail':'low'}}",
	{"=", "{'type':'image','source':{'type':'base64','media_type':'image/png','data':'AA'}}",
	    "{'type':'input_image','detail':'low','image_url':'data:image/png;base64,AA'}"},
	false},
    {WIRE_CHAT, "image by address",
	"{'type':'image_url','image_url':{'url':'https://x.example/a'}}",
	{"=", "{'type':'image','source':{'type':'url','url':'https://x.example/a'}}",
	    "{'type':'input_image','detail':'auto','image_url':'https://x.example/a'}"},
	false},
    {WIRE_CHAT, "file as data",
	"{'type':'file','file':{'filename':'a.pdf','file_data':'data:application/pdf;base64,AA'}}",
	{"=",
	    "{'type':'document','source':{'type':'base64','media_type':'application/pdf','data':"
	    "'AA'},'title':'a.pdf'}",
	    "{'type':'input_file','filename':'a.pdf','file_data':'data:application/"
	    "pdf;base64,AA'}"},
	false},
    {WIRE_CHAT, "file by id", "{'type':'file','file':{'file_id':'file-1'}}",
	{"=", "{'type':'document','source':{'type':'file','file_id':'file-1'}}",
	    "{'type':'input_file','file_id':'file-1'}"},
	true},
    {WIRE_CHAT, "audio", "{'type':'input_audio','input_audio':{'data':'AA','format':'wav'}}",
	{"=", "refused input_audio: this model takes no audio",
	    "{'type':'input_audio','input_audio':{'data':'AA','format':'wav'}}"},
	false},
    {WIRE_CHAT, "a part that only Chat knows", "{'type':'hologram'}",
	{"=", "dropped chat.content.hologram", "dropped chat.content.hologram"}, false},
};

static const struct translation_row messages_part_rows[] = {
    {WIRE_MESSAGES, "image as data",
	"{'type':'image','source':{'type':'base64','media_type':'image/png','data':'AA'}}",
	{"{'type':'image_url','image_url':{'url':'data:image/png;base64,AA'}}", "=",
	    "{'type':'input_image','detail':'auto','image_url':'data:image/png;base64,AA'}"},
	false},
    {WIRE_MESSAGES, "document as data",
	"{'type':'document','source':{'type':'base64','media_type':'application/pdf','data':'AA'},"
	"'title':'a.pdf'}",
	{"{'type':'file','file':{'filename':'a.pdf','file_data':'data:application/pdf;base64,AA'}}",
	    "=",
	    "{'type':'input_file','filename':'a.pdf','file_data':'data:application/"
	    "pdf;base64,AA'}"},
	false},
    {WIRE_MESSAGES, "document by address",
	"{'type':'document','source':{'type':'url','url':'https://x.example/a.pdf'}}",
	{"dropped messages.content.document_url", "=",
	    "{'type':'input_file','file_url':'https://x.example/a.pdf'}"},
	false},
    {WIRE_MESSAGES, "document as text",
	"{'type':'document','source':{'type':'text','media_type':'text/plain','data':'body'},"
	"'title':'T'}",
	{"'content':'Document: T\\nbody'", "=",
	    "{'type':'input_text','text':'Document: T\\nbody'}"},
	false},
    {WIRE_MESSAGES, "search result",
	"{'type':'search_result','source':'u','title':'T','content':[{'type':'text','text':'body'}]"
	"}",
	{"'content':'Document: T\\nbody'", "=",
	    "{'type':'input_text','text':'Document: T\\nbody'}"},
	false},
    {WIRE_MESSAGES, "cache breakpoint: OpenAI caches by prefix",
	"{'type':'text','text':'q','cache_control':{'type':'ephemeral'}}",
	{"{'role':'user','content':'q'}", "=", "{'type':'input_text','text':'q'}"}, false},
    {WIRE_MESSAGES, "file for the code alone: in its working directory, or nowhere",
	"{'type':'text','text':'q'},{'type':'container_upload','file_id':'file_1'}",
	{"{'role':'user','content':'q'}", "=", "{'type':'input_text','text':'q'}"}, false},
};

static const struct translation_row responses_part_rows[] = {
    {WIRE_RESPONSES, "image as data",
	"{'type':'input_image','image_url':'data:image/png;base64,AA','detail':'high'}",
	{"{'type':'image_url','image_url':{'url':'data:image/png;base64,AA','detail':'high'}}",
	    "{'type':'image','source':{'type':'base64','media_type':'image/png','data':'AA'}}",
	    "="},
	false},
    {WIRE_RESPONSES, "file as data",
	"{'type':'input_file','filename':'a.pdf','file_data':'data:application/pdf;base64,AA'}",
	{"{'type':'file','file':{'filename':'a.pdf','file_data':'data:application/pdf;base64,AA'}}",
	    "{'type':'document','source':{'type':'base64','media_type':'application/pdf','data':"
	    "'AA'},'title':'a.pdf'}",
	    "="},
	false},
    {WIRE_RESPONSES, "picture sent as a file",
	"{'type':'input_file','filename':'a.png','file_data':'data:image/png;base64,AA'}",
	{"{'type':'image_url','image_url':{'url':'data:image/png;base64,AA'}}",
	    "{'type':'image','source':{'type':'base64','media_type':'image/png','data':'AA'}}",
	    "="},
	false},
    {WIRE_RESPONSES, "file by address",
	"{'type':'input_file','file_url':'https://x.example/a.pdf'}",
	{"dropped responses.input.document_url",
	    "{'type':'document','source':{'type':'url','url':'https://x.example/a.pdf'}}", "="},
	false},
    {WIRE_RESPONSES, "audio", "{'type':'input_audio','input_audio':{'data':'AA','format':'mp3'}}",
	{"{'type':'input_audio','input_audio':{'data':'AA','format':'mp3'}}",
	    "refused input_audio: this model takes no audio", "="},
	false},
};

static const struct translation_row call_rows[] = {
    {WIRE_CHAT, "call and result",
	"{'role':'assistant','content':null,'tool_calls':[{'id':'c1','type':'function','function':{"
	"'name':'f','arguments':'{}'}}]},{'role':'tool','tool_call_id':'c1','content':'r'}",
	{"=",
	    "{'type':'tool_use','id':'c1','name':'f','input':{}}]},{'role':'user','content':[{"
	    "'type':'tool_result','tool_use_id':'c1','content':[{'type':'text','text':'r'}]}",
	    "{'type':'function_call','call_id':'c1','name':'f','arguments':'{}'},{'type':"
	    "'function_call_output','call_id':'c1','output':'r'}"},
	false},
    {WIRE_MESSAGES, "call and result; an error",
	"{'role':'assistant','content':[{'type':'tool_use','id':'c1','name':'f','input':{}}]},{"
	"'role':'user','content':[{'type':'tool_result','tool_use_id':'c1','is_error':true,"
	"'content':'r'}]}",
	{"'tool_calls':[{'id':'c1','type':'function','function':{'name':'f','arguments':'{}'}}]},{"
	 "'role':'tool','tool_call_id':'c1','content':'Error: r'}",
	    "=",
	    "{'type':'function_call','call_id':'c1','name':'f','arguments':'{}'},{'type':"
	    "'function_call_output','call_id':'c1','output':'Error: r'}"},
	false},
    {WIRE_RESPONSES, "call and result",
	"{'type':'function_call','id':'fc_1','call_id':'c1','name':'f','arguments':'{}'},{'type':"
	"'function_call_output','call_id':'c1','output':'r'}",
	{"'tool_calls':[{'id':'c1','type':'function','function':{'name':'f','arguments':'{}'}}]},{"
	 "'role':'tool','tool_call_id':'c1','content':'r'}",
	    "{'type':'tool_use','id':'c1','name':'f','input':{}}]},{'role':'user','content':[{"
	    "'type':'tool_result','tool_use_id':'c1','content':[{'type':'text','text':'r'}]}",
	    "="},
	false},
    {WIRE_MESSAGES, "result with an image",
	"{'role':'assistant','content':[{'type':'tool_use','id':'c1','name':'f','input':{}}]},{"
	"'role':'user','content':[{'type':'tool_result','tool_use_id':'c1','content':[{'type':"
	"'image','source':{'type':'url','url':'u'}}]}]}",
	{"{'role':'tool','tool_call_id':'c1','content':'(no output)'},{'role':'user','content':[{"
	 "'type':'text','text':'[Attached to the result of tool call c1]'},{'type':'image_url',"
	 "'image_url':{'url':'u'}}]}",
	    "=", "'output':[{'type':'input_image','detail':'auto','image_url':'u'}]"},
	false},
    {WIRE_CHAT, "arguments that are no JSON object",
	"{'role':'assistant','content':null,'tool_calls':[{'id':'c1','type':'function','function':{"
	"'name':'f','arguments':'oops'}}]}",
	{"=", "{'type':'tool_use','id':'c1','name':'f','input':{'_raw':'oops'}}",
	    "{'type':'function_call','call_id':'c1','name':'f','arguments':'oops'}"},
	false},
    {WIRE_RESPONSES, "call of a custom tool",
	"{'type':'custom_tool_call','call_id':'c1','name':'f','input':'text'}",
	{"'function':{'name':'f','arguments':'{\\'input\\':\\'text\\'}'}",
	    "{'type':'tool_use','id':'c1','name':'f','input':{'input':'text'}}", "="},
	false},
    {WIRE_RESPONSES, "execution at the provider",
	"{'type':'code_interpreter_call','id':'ci_1','code':'1+1','container_id':'cntr_1',"
	"'outputs':[{'type':'logs','logs':'2'}],'status':'completed'}",
	{"[code was executed]\\n```python\\n1+1\\n```\\nlogs:\\n2",
	    "[code was executed]\\n```python\\n1+1\\n```\\nlogs:\\n2", "="},
	false},
    {WIRE_MESSAGES, "execution at the provider",
	"{'role':'assistant','content':[{'type':'server_tool_use','id':'srvtoolu_1','name':"
	"'code_execution','input':{'code':'1+1'}},{'type':'code_execution_tool_result',"
	"'tool_use_id':'srvtoolu_1','content':{'type':'code_execution_result','stdout':'2',"
	"'stderr':'','return_code':0,'content':[]}}]}",
	{"[code was executed]\\n```python\\n1+1\\n```\\nstdout:\\n2", "=",
	    "[code was executed]\\n```python\\n1+1\\n```\\nstdout:\\n2"},
	false},
    {WIRE_MESSAGES, "bash at the provider",
	"{'role':'assistant','content':[{'type':'server_tool_use','id':'srvtoolu_1','name':"
	"'bash_code_execution','input':{'command':'ls'}},{'type':"
	"'bash_code_execution_tool_result','tool_use_id':'srvtoolu_1','content':{'type':"
	"'bash_code_execution_result','stdout':'a','stderr':'','return_code':1,'content':[{'type':"
	"'bash_code_execution_output','file_id':'f_1'}]}}]}",
	{"[code was executed]\\n```bash\\nls\\n```\\nstdout:\\na\\nreturn_code: 1\\nfiles: f_1",
	    "=",
	    "[code was executed]\\n```bash\\nls\\n```\\nstdout:\\na\\nreturn_code: 1\\nfiles: f_1"},
	false},
    {WIRE_RESPONSES, "an item that only Responses knows",
	"{'type':'web_search_call','id':'ws_1','status':'completed'}",
	{"dropped responses.input.web_search_call", "dropped responses.input.web_search_call", "="},
	false},
};

static const struct translation_row reasoning_rows[] = {
    {WIRE_MESSAGES, "thinking of a Messages provider",
	"{'role':'assistant','content':[{'type':'thinking','thinking':'t','signature':'SIG'},{"
	"'type':'tool_use','id':'c1','name':'f','input':{}}]}",
	{NULL, "=", NULL}, false},
    {WIRE_MESSAGES, "thinking of a Responses provider, as a Messages client keeps it",
	"{'role':'assistant','content':[{'type':'thinking','thinking':'t','signature':"
	"'otari_rs_r.rs_1.ENC'},{'type':'tool_use','id':'c1','name':'f','input':{}}]}",
	{NULL, NULL,
	    "{'type':'reasoning','id':'rs_1','summary':[{'type':'summary_text','text':'t'}],"
	    "'encrypted_content':'ENC'}"},
	false},
    {WIRE_MESSAGES, "reasoning of a Chat server, as a Messages client keeps it",
	"{'role':'assistant','content':[{'type':'thinking','thinking':'t','signature':"
	"'otari_rs_reasoning_content'},{'type':'tool_use','id':'c1','name':'f','input':{}}]}",
	{"'reasoning_content':'t'", NULL, NULL}, false},
    {WIRE_CHAT, "reasoning of a Chat server",
	"{'role':'assistant','content':null,'reasoning_content':'t','tool_calls':[{'id':'c1',"
	"'type':'function','function':{'name':'f','arguments':'{}'}}]}",
	{"=", NULL, NULL}, false},
    {WIRE_RESPONSES, "reasoning of a Responses provider",
	"{'type':'reasoning','id':'rs_1','summary':[{'type':'summary_text','text':'t'}],"
	"'encrypted_content':'ENC'}",
	{NULL, NULL, "="}, false},
    {WIRE_RESPONSES, "thinking of a Messages provider, as a Responses client keeps it",
	"{'type':'reasoning','id':'rs_1','summary':[{'type':'summary_text','text':'t'}],"
	"'encrypted_content':'otari_rs_m.SIG'},{'type':'function_call','call_id':'c1','name':'f',"
	"'arguments':'{}'}",
	{NULL, "{'type':'thinking','thinking':'t','signature':'SIG'}", NULL}, false},
};

#endif
