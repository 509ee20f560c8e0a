/* Compiled once more, plain and position-independent. */
#include "sandbox/init/selftest.c" /* NOLINT(bugprone-suspicious-include) */
