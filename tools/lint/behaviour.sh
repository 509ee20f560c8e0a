#!/bin/bash
# behaviour.sh - tests/BEHAVIOUR.md names every number of the acceptance list, and only tests that exist
. "$(dirname "$0")/lib.sh"
sources '*.c' | grep '^tests/' | xargs -d '\n' python3 tools/lint/behaviour.py tests/BEHAVIOUR.md
