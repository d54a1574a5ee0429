# server: when qwen3-32b is asked, 1 of them
# sbatch --parsable < this
#!/bin/bash
# Serves the model qwen3-32b on cpu-cluster.
#SBATCH --job-name=sharp-00000000-server
#SBATCH --time=720
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=65536M
#SBATCH --comment=00000000-s1
#SBATCH --output="/shared/runs/my run/slurm/logs/%j.out"
#SBATCH --open-mode=append
#SBATCH --signal=B:USR2@600
#SBATCH --requeue
set -e
export HF_HUB_OFFLINE=1
export TRANSFORMERS_OFFLINE=1
export VLLM_NO_USAGE_STATS=1
export DO_NOT_TRACK=1
export TMPDIR=/tmp
exec /opt/sharp/bin/python -P -m hpc.serving.supervisor --folder '/shared/runs/my run/slurm/servers' --key-file '/shared/runs/my run/slurm/servers/key' --model qwen3-32b --served-name Qwen/Qwen3-32B --address hostname --nodes 1 --time=43200 --ready=3600 --watch=30 --idle=1800 --drain=600 --renew=1800 --renewal= -- vllm serve Qwen/Qwen3-32B --served-model-name Qwen/Qwen3-32B --host '{host}' --port '{port}' --dtype bfloat16 --tensor-parallel-size 2 --max-model-len=40960 --generation-config=vllm --enable-prompt-tokens-details --reasoning-parser=qwen3
