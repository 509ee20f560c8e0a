/* admin_write.h - members that several administrative answers share. Pure. */
#ifndef OTARI_WORKER_API_ADMIN_WRITE_H
#define OTARI_WORKER_API_ADMIN_WRITE_H

#include "base/clock.h"
#include "base/json_write.h"

/* RFC 3339, or null for 0. */
static inline void
admin_write_time(struct jw *w, const char *name, int64_t epoch_s)
{
	char text[CLOCK_RFC3339_SIZE];
	if (epoch_s <= 0) {
		jw_knull(w, name);
		return;
	}
	clock_rfc3339(epoch_s, text);
	jw_kcstr(w, name, text);
}

/* null for STR_NULL. */
static inline void
admin_write_text(struct jw *w, const char *name, struct str s)
{
	if (s.ptr == NULL)
		jw_knull(w, name);
	else
		jw_kstr(w, name, s);
}

#endif
