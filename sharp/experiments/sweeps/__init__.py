"""Sweeps: a matrix of runs that is planned, carried out and tabulated as one thing."""
