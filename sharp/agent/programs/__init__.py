"""Programs that a model writes instead of choosing parameters of tools: asked for, run, used as a solution."""
