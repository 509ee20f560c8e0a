/* Compiled once more, plain and position-independent. */
#include "ipc/frames.c" /* NOLINT(bugprone-suspicious-include) */
