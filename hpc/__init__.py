"""How work runs: journal, checkpoints, leases, sandboxes and (later) Slurm. Knows nothing of PDEs."""
