"""Physics-informed neural networks as a numerical method (optional extra `pinn`)."""
