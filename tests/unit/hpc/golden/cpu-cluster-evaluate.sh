#!/bin/bash
# Generated; submit again: sharp cluster show
# cpu-cluster
#SBATCH --job-name=burgers-s0
#SBATCH --time=60
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=16384M
#SBATCH --comment=0123abcd
#SBATCH --output="/shared/runs/my run/logs/%j.out"
#SBATCH --open-mode=append
#SBATCH --signal=B:USR2@300
#SBATCH --no-requeue
set -e
export TMPDIR=/tmp
exec /opt/sharp/bin/python -P -m module '/shared/runs/my run'
