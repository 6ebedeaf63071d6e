#!/bin/sh
# usage: run.sh PYTHON OTHER TEST ARGUMENT...
# Runs a test with PYTHON, or, where that is empty, with OTHER; exit code 77 without both.
python=${1:-$2}
if [ ! -x "$python" ]; then
  echo "skipped: no Python with JAX: KILN_JAX_PYTHON can name one, make jax-test makes one"
  exit 77
fi
shift 2
exec "$python" "$@"
