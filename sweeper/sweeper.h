/* sweeper.h - housekeeping process: usage spools into the database, dead files out of it
 *
 * Process: sweeper, one per master. Blocks in SQL and on disk; talks only to the master.
 */
#ifndef OTARI_SWEEPER_SWEEPER_H
#define OTARI_SWEEPER_SWEEPER_H

/* Role entry after exec; returns the exit status. */
int sweeper_main(int argc, char **argv);

#endif
