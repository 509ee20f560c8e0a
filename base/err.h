/* err.h - the one error type
 *
 * Process: any.
 * Rule:    a function that can fail returns enum err_code, is MUST_CHECK, takes struct err *reterr
 * last (may be NULL), and never touches its outputs on failure. The text is for the operator; what
 *          a client reads is chosen from the code in worker/api/error.c.
 */
#ifndef OTARI_BASE_ERR_H
#define OTARI_BASE_ERR_H

#define MUST_CHECK   __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum err_code {
	ERR_OK = 0,
	ERR_INPUT,       /* what the caller sent is wrong */
	ERR_AUTH,        /* no or unknown credential */
	ERR_DENIED,      /* known, but not allowed */
	ERR_NOTFOUND,    /* no such thing, or not the caller's */
	ERR_CONFLICT,    /* exists already, or is read-only */
	ERR_TOOLARGE,    /* over a size limit */
	ERR_LIMIT,       /* rate or concurrency limit */
	ERR_BUDGET,      /* money or price */
	ERR_TIMEOUT,     /* a deadline passed */
	ERR_UPSTREAM,    /* the provider failed or refused */
	ERR_UNCERTAIN,   /* a write may or may not have happened */
	ERR_BUSY,        /* at capacity; try again later */
	ERR_IO,          /* the system said no: see sys_errno */
	ERR_PROTO,       /* a peer broke a protocol */
	ERR_NOMEM,       /* over a memory budget */
	ERR_UNSUPPORTED, /* not built */
	ERR_INTERNAL,    /* our own fault */
	ERR_MAX_,
};

struct err {
	enum err_code code;
	int sys_errno; /* 0: none */
	char msg[256];
};

/* Fills e (NULL allowed) and returns code, so that `return err_set(...)` reads well. errno is kept
 * in sys_errno for ERR_IO and appended to the text. */
enum err_code err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
/* Puts context in front of what e already says. */
void err_prefix(struct err *e, const char *fmt, ...) PRINTF(2, 3);
const char *err_name(enum err_code code);

#endif
