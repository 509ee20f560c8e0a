/* builder.h - the process that turns otari.conf and the database into sealed snapshots
 *
 * Process: builder. Lives for one build; blocks in SQL. The only one that parses the configuration,
 * so that a bad one can hang or crash nothing else.
 */
#ifndef OTARI_BUILDER_BUILDER_H
#define OTARI_BUILDER_BUILDER_H

/* Role entry after exec; returns the exit status: 0 built, 2 bad configuration, 1 other failure. */
int builder_main(int argc, char **argv);

#endif
