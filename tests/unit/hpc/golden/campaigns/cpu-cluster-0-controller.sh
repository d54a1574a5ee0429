# controller: at the launch
# sbatch --parsable < this
#!/bin/bash
# Steers /shared/runs/my run; see docs/guides/cluster.md.
#SBATCH --job-name=sharp-00000000-controller
#SBATCH --time=1440
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4096M
#SBATCH --comment=00000000-c1
#SBATCH --output="/shared/runs/my run/slurm/logs/controller-%j.out"
#SBATCH --open-mode=append
#SBATCH --chdir="/shared/runs/my run"
#SBATCH --dependency=singleton
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --requeue
#SBATCH --signal=B:USR2@150
set -e
trap '' TERM USR2
export TMPDIR=/tmp
exec /opt/sharp/bin/python -P -m sharp.controller '/shared/runs/my run' 00000000-c1
