/* Compiled once more, plain and position-independent. */
#include "sandbox/jail/session_locks.c" /* NOLINT(bugprone-suspicious-include) */
