"""Running candidate solvers and scoring what they return."""
