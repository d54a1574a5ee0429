"""The version of the software, which records of runs and data sets name."""

__version__ = "0.1.0"
