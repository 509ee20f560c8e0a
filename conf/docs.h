/* docs.h - the shipped otari.conf and its man page, made from the key table
 *
 * Process: none of the service; a unit test keeps the files in step (OTARI_TEST_UPDATE=1 rewrites).
 */
#ifndef OTARI_CONF_DOCS_H
#define OTARI_CONF_DOCS_H

#include "base/buf.h"

void conf_example(struct buf *dst); /* otari.conf */
void conf_man(struct buf *dst);     /* docs/otari.conf.5 */

#endif
