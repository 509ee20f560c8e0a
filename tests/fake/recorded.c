/* recorded.c - replays a recorded answer: NAME.json whole, NAME.chunks.txt one event a line */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "tests/fake/fake.h"

#define RECORDED_MAX (64u * 1024u * 1024u)

static void
add_lines(struct pace *p, struct ask *q, struct str text)
{
	struct str line;

	while (str_split(&text, '\n', &line)) {
		json_t *event;

		line = str_trim(line);
		if (line.len == 0)
			continue;
		event = json_loadb(line.ptr, line.len, 0, NULL);
		pace_add_event(p,
		    q->wire == FAKE_CHAT ? NULL : json_string_value(json_object_get(event, "type")),
		    line);
		json_decref(event);
	}
	if (q->wire == FAKE_CHAT)
		pace_add_event(p, NULL, STR("[DONE]"));
}

bool
recorded_run(struct ask *q, const char *name)
{
	const char *dir = getenv("OTARI_RECORDED");
	char path[1024], *bytes = NULL;
	size_t len = 0;
	struct pace *p;
	int n;

	if (strstr(name, "..") != NULL)
		return false;
	n = snprintf(path, sizeof(path), "%s/%s%s", dir != NULL ? dir : "../shared/data/recorded",
	    name, q->stream ? ".chunks.txt" : ".json");
	if (n < 0 || (size_t)n >= sizeof(path) ||
	    fd_read_file(path, RECORDED_MAX, &bytes, &len, NULL) != ERR_OK)
		return false;
	p = pace_new(q->req, 0);
	if (q->stream)
		add_lines(p, q, str_n(bytes, len));
	else
		pace_add(p, str_n(bytes, len));
	pace_run(p, 200, q->stream ? "text/event-stream" : "application/json", PACE_END);
	mem_free(bytes);
	return true;
}
