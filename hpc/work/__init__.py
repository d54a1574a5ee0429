"""Work for jobs to take: a queue on shared storage, elements of Slurm arrays that take from it, and who sends them.

See docs/dispatch.md for states, files and guarantees.
"""
