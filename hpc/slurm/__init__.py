"""Running on Slurm: a client for its commands, batch scripts, and what has to be known about a cluster.

What Slurm says about a job is a hint. Its accounting may be absent, late or wrong, its controller away for
minutes, and a finished job is forgotten after a while: so whether work is done is read from results, never here.
"""
