#!/bin/sh
# Builds the site into build/site, strictly: a warning, a broken link or a page that is not in the navigation fails it.
# PYTHON_BIN names the interpreter of an environment with the extra `docs`; else .venv is made with it.
set -eu
if [ -z "${PYTHON_BIN:-}" ]; then
    EXTRAS=docs
    . "$(dirname "$0")/setup.sh"
    PYTHON_BIN=.venv/bin/python
fi
cd "$(dirname "$0")/.."
export NO_MKDOCS_2_WARNING=1 # a notice about another project's plans
exec "$PYTHON_BIN" -m mkdocs build --strict "$@"
