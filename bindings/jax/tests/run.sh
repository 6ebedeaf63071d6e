#!/bin/sh
# usage: run.sh PYTHON OTHER TEST ARGUMENT...
# Runs a test with the Python of KILN_TEST_PYTHON, with PYTHON or with OTHER: the first that is named.
# Exit code 77 without it.
python=${KILN_TEST_PYTHON:-${1:-$2}}
if [ ! -x "$python" ]; then
  echo "skipped: no Python with JAX: KILN_JAX_PYTHON can name one, make jax-test makes one"
  exit 77
fi
shift 2
exec "$python" "$@"
