/* Files that code made: what is stored whole gets an id; what is not leaves nothing behind. */
#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "storage/blob/blob.h"
#include "storage/sql/store_file.h"
#include "tests/unit/dbfix.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/request.h"
#include "worker/turn/attach_plan.h"
#include "worker/turn/outputs.h"

#define QUEUE 2

TestSuite(outputs, .timeout = 20);

struct world {
	struct dbfix db;
	struct worker_env env;
	struct board_slot slot;
	struct request *req;
	char blobs[128];
	_Atomic bool gate_open;
	struct job gate[4];
	unsigned gates_done;
	bool is_done;
	struct output_file *files;
};

static void *
give_db(void *arg)
{
	struct world *w = arg;
	return dbfix_connect(&w->db);
}

static void
close_db(void *context)
{
	struct db *db = context;
	db_close(&db);
}

static void
start(struct world *w)
{
	memset(w, 0, sizeof(*w));
	dbfix_open(&w->db, DB_SQLITE);
	const struct jobs_config sql = {.name = "sql",
	    .threads = 1,
	    .queue_max = QUEUE,
	    .thread_open = give_db,
	    .thread_close = close_db,
	    .arg = w};
	const struct jobs_config io = {.name = "io", .threads = 1, .queue_max = QUEUE};
	w->env.base = event_base_new();
	w->env.slot = &w->slot;
	cr_assert_eq(jobs_new(w->env.base, &sql, &w->env.sql, NULL), ERR_OK);
	cr_assert_eq(jobs_new(w->env.base, &io, &w->env.io, NULL), ERR_OK);
	(void)snprintf(w->blobs, sizeof(w->blobs), "%s/files", w->db.dir);
	cr_assert_eq(blob_open_local(w->blobs, &w->env.blobs, NULL), ERR_OK);
	w->req = MEM_NEW(struct request);
	w->req->magic = REQUEST_MAGIC;
	w->req->refs = 1;
	w->req->env = &w->env;
	w->req->arena = arena_new(1u << 20);
}

static void
stop(struct world *w)
{
	cr_expect_eq(w->req->refs, 1, "%u references are left", w->req->refs);
	request_put(&w->req);
	jobs_free(&w->env.sql);
	jobs_free(&w->env.io);
	blob_close(&w->env.blobs);
	event_base_free(w->env.base);
	dbfix_close(&w->db);
}

static void
run_gate(struct job *j, void *context)
{
	struct world *w = j->arg;
	(void)context;
	while (!w->gate_open)
		sched_yield();
}

static void
gate_done(struct job *j, bool cancelled)
{
	struct world *w = j->arg;
	(void)cancelled;
	w->gates_done++;
}

/* Nothing more is taken by this pool until open_gate. */
static void
shut_gate(struct world *w, struct jobs *pool)
{
	size_t n = 0;
	w->gate_open = false;
	w->gates_done = 0;
	for (int i = 0; i < 1 + QUEUE; i++) {
		w->gate[n] = (struct job){.run = run_gate, .done = gate_done, .arg = w};
		while (jobs_submit(pool, &w->gate[n], NULL) != ERR_OK)
			sched_yield();
		n++;
		while (i == 0 && jobs_queued(pool) > 0)
			sched_yield();
	}
}

static void
open_gate(struct world *w)
{
	w->gate_open = true;
	while (w->gates_done < 1 + QUEUE)
		event_base_loop(w->env.base, EVLOOP_ONCE);
}

/* Until the jobs before are done. */
static void
pass_through(struct world *w, struct jobs *pool)
{
	w->gate_open = true;
	w->gates_done = 0;
	w->gate[0] = (struct job){.run = run_gate, .done = gate_done, .arg = w};
	while (jobs_submit(pool, &w->gate[0], NULL) != ERR_OK)
		sched_yield();
	while (w->gates_done < 1)
		event_base_loop(w->env.base, EVLOOP_ONCE);
}

/* Until all that was begun is done. */
static void
settle(struct world *w)
{
	while (w->req->refs > 1)
		event_base_loop(w->env.base, EVLOOP_ONCE);
}

static void
on_done(void *arg, struct output_file *files)
{
	struct world *w = arg;
	w->is_done = true;
	w->files = files;
}

static int
count_files(const char *dir)
{
	char path[512];
	int n = 0;
	DIR *d = opendir(dir);
	if (d == NULL)
		return 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n += e->d_type == DT_DIR ? count_files(path) : 1;
	}
	closedir(d);
	return n;
}

static int64_t
count_rows(struct world *w)
{
	struct arena *a = arena_new(1u << 20);
	const struct store_file_query q = {.scope = {STR("u"), STR("w")}, .limit = 10};
	struct store_file *rows;
	size_t n = 0;
	bool more;
	cr_assert_eq(store_file_list(w->db.db, a, &q, &rows, &n, &more, NULL), ERR_OK);
	arena_free(&a);
	return (int64_t)n;
}

static const struct outputs_owner owner = {STR_INIT("u"), STR_INIT("w"), 0};

Test(outputs, a_whole_file_gets_an_id)
{
	struct world w;
	start(&w);
	struct outputs *o = outputs_new(w.req, NULL, &owner);
	cr_assert(outputs_file_begin(o, STR("a.txt"), 5));
	outputs_file_data(o, STR("hello"));
	outputs_file_end(o, true);
	outputs_name_only(o, STR("b.txt"));
	outputs_finish(o, on_done, &w);
	settle(&w);
	cr_assert(w.is_done && w.files != NULL && w.files->next != NULL);
	cr_expect(w.files->file_id.len > 0);
	cr_expect_eq(w.files->next->file_id.len, 0);
	cr_expect_eq(count_files(w.blobs), 1);
	cr_expect_eq(count_rows(&w), 1);
	stop(&w);
}

Test(outputs, any_name_is_stored_as_text_on_one_line)
{
	struct world w;
	char name[1024];
	start(&w);
	struct outputs *o = outputs_new(w.req, NULL, &owner);
	memset(name, 'x', sizeof(name));
	for (size_t i = 1; i < 340; i++) /* the cut falls into a character */
		memcpy(name + 3 * i, "\xe6\xbc\xa2", 3);
	memcpy(name + sizeof(name) - 4, ".csv", 4);
	struct str names[] = {str_n(name, sizeof(name)), STR("a\n\"b\x1b\x7f\xff")};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		cr_assert(outputs_file_begin(o, names[i], 1));
		outputs_file_data(o, STR("x"));
		outputs_file_end(o, true);
	}
	outputs_finish(o, on_done, &w);
	settle(&w);
	cr_assert(w.is_done && w.files != NULL && w.files->next != NULL);
	cr_expect(w.files->file_id.len > 0 && w.files->next->file_id.len > 0);
	struct str got = w.files->name;
	cr_expect(got.len > 500 && got.len <= LIMIT_FILENAME_BYTES && utf8_valid(got));
	cr_expect(str_ends(got, STR(".csv")));
	cr_expect(str_eq(w.files->next->name, STR("a_\"b__\xef\xbf\xbd")));
	cr_expect_eq(count_rows(&w), 2);
	stop(&w);
}

Test(outputs, bytes_that_found_no_room_in_the_queue_leave_no_short_file)
{
	struct world w;
	start(&w);
	struct outputs *o = outputs_new(w.req, NULL, &owner);
	cr_assert(outputs_file_begin(o, STR("a.txt"), 10));
	pass_through(&w, w.env.io);
	cr_assert_eq(count_files(w.blobs), 1, "it was begun");
	shut_gate(&w, w.env.io);
	outputs_file_data(o, STR("hello")); /* refused */
	open_gate(&w);
	outputs_file_data(o, STR("world"));
	outputs_file_end(o, true);
	outputs_finish(o, on_done, &w);
	settle(&w);
	cr_assert(w.is_done && w.files != NULL);
	cr_expect_eq(w.files->file_id.len, 0, "a file with a hole was stored");
	cr_expect_eq(count_files(w.blobs), 0);
	cr_expect_eq(count_rows(&w), 0);
	stop(&w);
}

Test(outputs, a_file_without_a_row_leaves_no_bytes)
{
	struct world w;
	start(&w);
	struct outputs *o = outputs_new(w.req, NULL, &owner);
	cr_assert(outputs_file_begin(o, STR("a.txt"), 5));
	outputs_file_data(o, STR("hello"));
	outputs_file_end(o, true);
	shut_gate(&w, w.env.sql);
	outputs_finish(o, on_done, &w); /* the row's job is refused */
	while (!w.is_done)
		event_base_loop(w.env.base, EVLOOP_ONCE);
	open_gate(&w);
	settle(&w);
	cr_expect_eq(w.files->file_id.len, 0);
	cr_expect_eq(count_files(w.blobs), 0, "a blob without a row");
	stop(&w);
}

Test(outputs, what_is_given_up_is_taken_away_though_the_queue_is_full)
{
	struct world w;
	start(&w);
	struct outputs *o = outputs_new(w.req, NULL, &owner);
	cr_assert(outputs_file_begin(o, STR("a.txt"), 5));
	outputs_file_data(o, STR("hello"));
	outputs_file_end(o, true);
	cr_assert(outputs_file_begin(o, STR("b.txt"), 5));
	outputs_file_data(o, STR("he"));
	/* What waited behind a running job comes with one of the next. */
	for (int i = 0; i < 1000 && count_files(w.blobs) < 2; i++)
		pass_through(&w, w.env.io);
	cr_assert_eq(count_files(w.blobs), 2, "both were begun");
	shut_gate(&w, w.env.io);
	outputs_cancel(&o);
	open_gate(&w);
	settle(&w);
	cr_expect(!w.is_done);
	cr_expect_eq(count_files(w.blobs), 0);
	cr_expect_eq(count_rows(&w), 0);
	stop(&w);
}

/* The rows are read by a thread that may outlive the client, its connection and the body. */
Test(outputs, ids_of_files_are_copied_out_of_the_body)
{
	struct arena *a = arena_new(1u << 20);
	char body[] = "file-123";
	struct conversation conv = {.arena = a};
	struct message *m = conversation_add(&conv, MESSAGE_USER);
	struct part *p = message_add(&conv, m, PART_UPLOAD);
	struct attach_plan plan;
	p->media.file_id = str_n(body, 8);
	cr_assert_eq(attach_collect(&conv, ATTACH_SANDBOX, NULL, &plan, NULL), ERR_OK);
	memset(body, 'x', 8);
	cr_assert_eq(plan.count, 1);
	cr_expect(str_eq(plan.first->file_id, STR("file-123")));
	arena_free(&a);
}
