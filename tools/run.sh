#!/bin/sh
# Sets everything up and runs the main job on the embedded default: no weights, no network, no GPU.
# Arguments are handed on to `sharp run` (for example: sh tools/run.sh --set seed=1).
set -eu
. "$(dirname "$0")/setup.sh"
exec .venv/bin/sharp run data/runs/reaction-diffusion.yaml "$@"
