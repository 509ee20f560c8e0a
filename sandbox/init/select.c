/* The selection rule, compiled plain into otari-init. */
#include "sandbox/collect/select.c" /* NOLINT(bugprone-suspicious-include) */
