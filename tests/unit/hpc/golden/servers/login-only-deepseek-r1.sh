#!/bin/bash
# Serves the model deepseek-r1 on login-only.
#SBATCH --job-name=sharp-3f9a1c2b-server
#SBATCH --account=my-project
#SBATCH --qos=gpu
#SBATCH --time=360
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=32
#SBATCH --gpus-per-node=h100:4
#SBATCH --exclusive
#SBATCH --comment=3f9a1c2b-s1
#SBATCH --output="/shared/runs/my run/slurm/logs/%j.out"
#SBATCH --open-mode=append
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclude=gpu07
#SBATCH --signal=B:USR2@600
#SBATCH --requeue
set -e
export HF_HUB_OFFLINE=1
export TRANSFORMERS_OFFLINE=1
export VLLM_NO_USAGE_STATS=1
export DO_NOT_TRACK=1
export TMPDIR="${SCRATCH:?}"
exec /opt/sharp/bin/python -P -m hpc.serving.supervisor --folder '/shared/runs/my run/slurm/servers' --key-file '/shared/runs/my run/slurm/servers/key' --model deepseek-r1 --served-name deepseek-ai/DeepSeek-R1 --address hostname --nodes 2 --time=21600 --ready=3600 --watch=30 --idle=1800 --drain=600 --renew=1800 --renewal= -- srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --mpi=none '{python}' -P -m hpc.serving.process_guard --rank vllm serve deepseek-ai/DeepSeek-R1 --served-model-name deepseek-ai/DeepSeek-R1 --host '{host}' --port '{port}' --dtype auto --tensor-parallel-size 4 --pipeline-parallel-size 2 --max-model-len=131072 --generation-config=vllm --enable-prompt-tokens-details --reasoning-parser=deepseek_r1 --enable-expert-parallel --nnodes 2 --master-addr '{name}' --master-port '{meeting_port}' --distributed-executor-backend mp
