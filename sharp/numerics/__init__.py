"""Numerical analysis: initial conditions, reference generators, self-converged solutions, residual operators."""
