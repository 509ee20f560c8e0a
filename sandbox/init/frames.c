/* The codec, compiled plain into otari-init. */
#include "ipc/frames.c" /* NOLINT(bugprone-suspicious-include) */
