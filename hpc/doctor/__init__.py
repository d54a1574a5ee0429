"""Checks of a machine and of a cluster, each finding with what to do about it."""
