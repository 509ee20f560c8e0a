/* Compiled once more, plain and position-independent. */
#include "sandbox/jail/landlock.c" /* NOLINT(bugprone-suspicious-include) */
