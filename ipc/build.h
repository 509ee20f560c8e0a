/* build.h - the talk between the master and the builder: one question, files, one answer
 *
 * master → builder  MSG_BUILD        struct build_request
 * builder → master  MSG_FILE_WANTED  struct build_file        (each with its own id; all at once)
 * master → builder  MSG_FILE         struct build_file_answer (same id; fd 0: the file, if ok)
 * builder → master  MSG_BUILT        struct build_result      (fds in the order of its `fds`)
 * Then the builder exits: 0 built, 2 a bad configuration, 1 anything else. Nothing is published
 * before MSG_BUILT with ok; a builder that dies without it has failed.
 *
 * The very first build of a master started as root does not know `user` yet: it asks for
 * BUILD_CONF alone, which reads neither database nor secret files, then starts a second builder as
 * that user for the rest.
 */
#ifndef OTARI_IPC_BUILD_H
#define OTARI_IPC_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "ipc/master_conf.h"

enum build_what {
	BUILD_CONF = 1,   /* always implied: parse, check, answer master_conf */
	BUILD_POLICY = 2, /* policy snapshot and secrets; reads declared files, reconciles */
	BUILD_KEYS = 4,   /* keys snapshot: base, or delta when keys_since is set */
};

/* Digests of state_dir and of the database without its password: these two cannot change under a
 * running service, some of whose processes would go on with the old ones. */
#define BUILD_IDENTITY_SIZE 65 /* with NUL: two halves of 32 hex digits */

struct build_request {
	uint32_t what;            /* enum build_what, or'ed */
	uint64_t generation;      /* to be written into the snapshots */
	struct str conf_path;     /* as given to -c, for error texts */
	struct str cwd;           /* the master's start directory, for relative paths */
	bool as_root;             /* the master runs as root: decides the default of state_dir */
	bool first;               /* nothing is in force yet: the database must be there */
	bool reload;              /* the operator asked: what is declared is reconciled */
	uint64_t keys_base;       /* snapshot generation of the keys base in force; 0: none */
	uint64_t keys_since;      /* build_result.db_keys of that base */
	uint64_t keys_base_count; /* build_result.keys_count of that base */
	uint64_t keys_base_age_s; /* since it was built; an old one is built anew */
	struct str identity;      /* build_result.identity of the first build; STR_NULL: is first */
};

enum build_file_kind {
	BUILD_FILE_READ,       /* open for reading; ENOENT and the like are the answer */
	BUILD_FILE_MASTER_KEY, /* master_key_open (conf/master_key.h): makes it when missing */
};
struct build_file {
	uint32_t kind; /* enum build_file_kind */
	struct str path;
};
struct build_file_answer {
	uint32_t sys_errno; /* 0: one fd comes with the message */
};

enum build_fd {
	BUILD_FD_POLICY = 1, /* sealed snapshot, SNAP_POLICY */
	BUILD_FD_KEYS,       /* sealed snapshot, SNAP_KEYS */
	BUILD_FD_WORKER_SECRETS,
	BUILD_FD_SWEEPER_SECRETS,
};
#define BUILD_FDS_MAX 8u

struct build_result {
	bool ok;
	bool bad_conf;       /* not ok because of the configuration: exit code 2 */
	struct str failure;  /* not ok: text for the operator, lines separated by \n */
	struct str warnings; /* lines separated by \n; may be "" */
	uint64_t generation; /* as asked */
	bool has_conf;       /* conf is filled (also when the database failed later) */
	struct master_conf conf;
	uint64_t db_policy, db_keys; /* the database's counters that the snapshots show */
	uint64_t keys_count;         /* entries of the keys snapshot */
	bool keys_is_delta;
	struct str identity;         /* BUILD_IDENTITY_SIZE - 1 bytes when has_conf */
	uint32_t fds[BUILD_FDS_MAX]; /* enum build_fd of each fd of the message, in order */
	uint32_t nfds;
};

void build_request_encode(const struct build_request *r, struct buf *dst);
MUST_CHECK enum err_code build_request_decode(
    struct arena *a, struct str bytes, struct build_request *ret, struct err *reterr);
void build_file_encode(const struct build_file *f, struct buf *dst);
MUST_CHECK enum err_code build_file_decode(
    struct arena *a, struct str bytes, struct build_file *ret, struct err *reterr);
void build_file_answer_encode(const struct build_file_answer *f, struct buf *dst);
MUST_CHECK enum err_code build_file_answer_decode(
    struct str bytes, struct build_file_answer *ret, struct err *reterr);
/* Texts are cut so that the message fits LIMIT_MSG_BYTES. */
void build_result_encode(const struct build_result *r, struct buf *dst);
MUST_CHECK enum err_code build_result_decode(
    struct arena *a, struct str bytes, struct build_result *ret, struct err *reterr);

#endif
