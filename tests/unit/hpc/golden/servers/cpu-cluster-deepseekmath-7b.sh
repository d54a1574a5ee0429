#!/bin/bash
# Serves the model deepseekmath-7b on cpu-cluster.
#SBATCH --job-name=sharp-3f9a1c2b-server
#SBATCH --time=720
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=65536M
#SBATCH --comment=3f9a1c2b-s1
#SBATCH --output="/shared/runs/my run/slurm/logs/%j.out"
#SBATCH --open-mode=append
#SBATCH --exclude=gpu07
#SBATCH --signal=B:USR2@600
#SBATCH --requeue
set -e
export HF_HUB_OFFLINE=1
export TRANSFORMERS_OFFLINE=1
export VLLM_NO_USAGE_STATS=1
export DO_NOT_TRACK=1
export TMPDIR=/tmp
exec /opt/sharp/bin/python -P -m hpc.serving.supervisor --folder '/shared/runs/my run/slurm/servers' --key-file '/shared/runs/my run/slurm/servers/key' --model deepseekmath-7b --served-name deepseek-ai/deepseek-math-7b-rl --address hostname --nodes 1 --time=43200 --ready=3600 --watch=30 --idle=1800 --drain=600 --renew=1800 --renewal= -- vllm serve deepseek-ai/deepseek-math-7b-rl --served-model-name deepseek-ai/deepseek-math-7b-rl --host '{host}' --port '{port}' --dtype bfloat16 --tensor-parallel-size 1 --max-model-len=4096 --generation-config=vllm --enable-prompt-tokens-details
