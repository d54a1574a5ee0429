#!/bin/bash
# Generated; submit again: sharp cluster show
# login-only
#SBATCH --job-name=burgers-s0
#SBATCH --account=my-project
#SBATCH --qos=gpu
#SBATCH --time=60
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=h100:1
#SBATCH --nice=100
#SBATCH --comment=0123abcd
#SBATCH --output="/shared/runs/my run/logs/%j.out"
#SBATCH --open-mode=append
#SBATCH --signal=B:USR2@300
#SBATCH --no-requeue
set -e
export TMPDIR="${SCRATCH:?}"
exec /opt/sharp/bin/python -P -m module '/shared/runs/my run'
