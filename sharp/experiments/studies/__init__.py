"""Studies: every table and figure of the paper as one command (`sharp reproduce`), over a sweep of runs."""
