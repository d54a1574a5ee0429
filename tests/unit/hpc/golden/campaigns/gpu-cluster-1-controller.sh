# controller: by each one, before it works
# sbatch --parsable < this
#!/bin/bash
# Steers /shared/runs/my run; see docs/guides/cluster.md.
#SBATCH --job-name=sharp-00000000-controller
#SBATCH --partition=cpu
#SBATCH --account=my-project
#SBATCH --time=1440
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4096M
#SBATCH --comment=00000000-c2
#SBATCH --output="/shared/runs/my run/slurm/logs/controller-%j.out"
#SBATCH --open-mode=append
#SBATCH --chdir="/shared/runs/my run"
#SBATCH --dependency=afternotok:0,singleton
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --requeue
#SBATCH --signal=B:USR2@150
set -e
trap '' TERM USR2
module load cuda/12.4
source /shared/my-project/pde-sharp/bin/activate
export TMPDIR="${TMPDIR:?}"
exec /opt/sharp/bin/python -P -m sharp.controller '/shared/runs/my run' 00000000-c2
