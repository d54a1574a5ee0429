#!/bin/bash
# Serves the model qwen3-32b on gpu-cluster.
#SBATCH --job-name=sharp-3f9a1c2b-server
#SBATCH --partition=gpu
#SBATCH --account=my-project
#SBATCH --constraint=a100
#SBATCH --time=720
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=122880M
#SBATCH --gres=gpu:2
#SBATCH --comment=3f9a1c2b-s1
#SBATCH --output="/shared/it\'s 100%% \"odd\" \$(touch x) \`touch x\` ; \#1 & */slurm/logs/%j.out"
#SBATCH --open-mode=append
#SBATCH --exclude=gpu07
#SBATCH --signal=B:USR2@600
#SBATCH --requeue
set -e
module load cuda/12.4
source /shared/my-project/pde-sharp/bin/activate
export HF_HUB_OFFLINE=1
export TRANSFORMERS_OFFLINE=1
export VLLM_NO_USAGE_STATS=1
export DO_NOT_TRACK=1
export TMPDIR="${TMPDIR:?}"
exec /opt/sharp/bin/python -P -m hpc.serving.supervisor --folder '/shared/it'"'"'s 100% "odd" $(touch x) `touch x` ; #1 & */slurm/servers' --key-file '/shared/it'"'"'s 100% "odd" $(touch x) `touch x` ; #1 & */slurm/servers/key' --model qwen3-32b --served-name 'it'"'"'s 100% "odd" $(touch x) `touch x` ; #1 & *' --address hostname --nodes 1 --time=43200 --ready=3600 --watch=30 --idle=1800 --drain=600 --renew=1800 --renewal= -- /shared/my-project/vllm/bin/vllm serve '/models/it'"'"'s 100% "odd" $(touch x) `touch x` ; #1 & *' --served-model-name 'it'"'"'s 100% "odd" $(touch x) `touch x` ; #1 & *' --host '{host}' --port '{port}' --dtype bfloat16 --tensor-parallel-size 2 --max-model-len=40960 --generation-config=vllm --enable-prompt-tokens-details --reasoning-parser=qwen3
