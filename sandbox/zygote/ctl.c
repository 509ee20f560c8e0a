/* Compiled once more, plain and position-independent. */
#include "sandbox/init/ctl.c" /* NOLINT(bugprone-suspicious-include) */
