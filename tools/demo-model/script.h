/* script.h - what the demo model says: a pure function of the request
 *
 * Asked about a data file, with a function at hand that runs code, it calls it with a program that
 * reads the file and draws a chart; asked to compute, with a program that does; given a result, it
 * tells it; otherwise it talks.
 */
#ifndef OTARI_TOOLS_DEMO_MODEL_SCRIPT_H
#define OTARI_TOOLS_DEMO_MODEL_SCRIPT_H

#include "tools/demo-model/answer.h"
#include "tools/demo-model/talk.h"

/* may_call: the request's tool_choice does not forbid it; must_call: it demands it. */
void script_answer(struct answer *a, const struct talk *t, bool may_call, bool must_call);

#endif
