"""How work runs on one machine or on Slurm, and outlives it: journal, sandbox, queue, servers, campaigns."""
