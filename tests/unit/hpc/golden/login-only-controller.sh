#!/bin/bash
# Generated; submit again: sharp cluster show
# login-only
#SBATCH --job-name=burgers-s0
#SBATCH --account=my-project
#SBATCH --qos=small
#SBATCH --time=720
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --comment=0123abcd
#SBATCH --output="/shared/runs/my run/logs/%j.out"
#SBATCH --open-mode=append
#SBATCH --signal=B:USR2@300
#SBATCH --no-requeue
set -e
export TMPDIR="${SCRATCH:?}"
exec /opt/sharp/bin/python -P -m module '/shared/runs/my run'
