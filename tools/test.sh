#!/bin/sh
# Sets everything up and passes lint, types and all tests. Arguments are handed on to pytest.
set -eu
EXTRAS=dev
. "$(dirname "$0")/setup.sh"
# One test opens the report in a real browser; it skips, saying so, where none can be had (but not in CI).
command -v chromium >/dev/null || as_root_install chromium || echo "test: no chromium; the browser test will be skipped" >&2
# Others start a private Slurm cluster.
[ -x /usr/sbin/slurmctld ] || as_root_install --no-install-recommends slurmctld slurmd slurm-client munge ||
    echo "test: no Slurm; the tests on a cluster will be skipped" >&2
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/lint-imports
# Clusters, servers and limits of time are real here, and machines are shared: what fails is tried once more, and named.
exec .venv/bin/python -m pytest -n "${TEST_WORKERS:-2}" --reruns 1 -rR "$@"
