"""Running on Slurm: a client for its commands, batch scripts, and what has to be known about a cluster.

What Slurm says about a job is a hint. Its accounting may be absent, late or wrong, its controller away for
minutes, and a finished job is forgotten after a while: so whether work is done is read from results, never here.
"""

import lazy_loader

# The face of this package is `__init__.pyi`; a module is loaded when one of its names is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
