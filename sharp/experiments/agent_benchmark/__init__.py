"""The benchmark of the agent: what its runs are worth, measured without asking the agent."""
