#!/bin/sh
# usage: run.sh PYTHON TEST
# Runs a test with the Python named, or with the one in KILN_JAX_PYTHON; exit code 77 without any.
python=${1:-$KILN_JAX_PYTHON}
if [ -z "$python" ]; then
  echo "skipped: KILN_JAX_PYTHON names no Python with JAX"
  exit 77
fi
exec "$python" "$2"
