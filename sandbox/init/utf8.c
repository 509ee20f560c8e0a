/* The check of text, compiled plain into otari-init. */
#include "base/utf8_valid.c" /* NOLINT(bugprone-suspicious-include) */
