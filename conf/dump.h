/* dump.h - values as text, for conf/ only; secrets as "***" */
#ifndef OTARI_CONF_DUMP_H
#define OTARI_CONF_DUMP_H

#include "base/buf.h"
#include "conf/conf.h"

/* v: the value of k inside c; not of a KT_SECTION. */
void conf_put_value(struct buf *dst, const struct conf *c, const struct conf_key *k, const void *v);

#endif
