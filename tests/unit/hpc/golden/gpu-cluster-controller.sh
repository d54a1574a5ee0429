#!/bin/bash
# Generated; submit again: sharp cluster show
# gpu-cluster
#SBATCH --job-name=burgers-s0
#SBATCH --partition=cpu
#SBATCH --account=my-project
#SBATCH --time=1440
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4096M
#SBATCH --comment=0123abcd
#SBATCH --output="/shared/runs/my run/logs/%j.out"
#SBATCH --open-mode=append
#SBATCH --signal=B:USR2@300
#SBATCH --no-requeue
set -e
module load cuda/12.4
source /shared/my-project/pde-sharp/bin/activate
export TMPDIR="${TMPDIR:?}"
exec /opt/sharp/bin/python -P -m module '/shared/runs/my run'
