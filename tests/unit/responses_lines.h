/* responses_lines.h - events of a Responses stream, one a line, as the tests of its reader write
 * them
 */
#ifndef OTARI_TESTS_UNIT_RESPONSES_LINES_H
#define OTARI_TESTS_UNIT_RESPONSES_LINES_H

#define CREATED                                                                                    \
	"{\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"mm\","         \
	"\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n"
#define END(response)                                                                              \
	"{\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"model\":\"mm\","       \
	"\"status\":\"completed\",\"error\":null," response "}}\n"
#define DONE END("\"output\":[]")
#define ADDED(i, item)                                                                             \
	"{\"type\":\"response.output_item.added\",\"output_index\":" i ",\"item\":" item "}\n"
#define CLOSED(i, item)                                                                            \
	"{\"type\":\"response.output_item.done\",\"output_index\":" i ",\"item\":" item "}\n"
#define MSG(id, parts)                                                                             \
	"{\"id\":\"" id "\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\"," \
	"\"content\":[" parts "]}"
#define TEXT(t) "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"" t "\"}"
#define SAY(i, t)                                                                                  \
	"{\"type\":\"response.output_text.delta\",\"output_index\":" i ",\"content_index\":0,"     \
	"\"item_id\":\"msg_" i "\",\"delta\":\"" t "\",\"logprobs\":[]}\n"
#define FC(id, call, name, args)                                                                   \
	"{\"id\":\"" id                                                                            \
	"\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"" call               \
	"\",\"name\":\"" name "\",\"arguments\":\"" args "\"}"
#define ARGS(i, id, piece)                                                                         \
	"{\"type\":\"response.function_call_arguments.delta\",\"output_index\":" i                 \
	",\"item_id\":\"" id "\",\"delta\":\"" piece "\"}\n"
#define ARGS_DONE(i, id, args)                                                                     \
	"{\"type\":\"response.function_call_arguments.done\",\"output_index\":" i                  \
	",\"item_id\":\"" id "\",\"arguments\":\"" args "\"}\n"
#define HEAD  "start resp_1 mm\n"
#define NOUSE "usage -1 -1\nend\n"

#endif
