"""Runs on a cluster: evaluations by Slurm jobs, controllers that are jobs themselves."""
