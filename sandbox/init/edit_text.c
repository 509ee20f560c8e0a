/* The editor's pure part, compiled plain into otari-init. */
#include "sandbox/edit/edit.c" /* NOLINT(bugprone-suspicious-include) */
