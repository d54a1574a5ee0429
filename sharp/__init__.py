"""pde-sharp: language models write, judge and refine numerical solvers for partial differential equations."""

__version__ = "0.1.0"
