#!/bin/bash
# layers.sh - see code.py
. "$(dirname "$0")/lib.sh"
sources '*.c' '*.h' | xargs -d '\n' python3 tools/lint/code.py layers
