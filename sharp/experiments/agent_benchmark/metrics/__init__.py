"""Metrics of agent runs: passes, tool chains and parameters, as pure functions (docs/reference/agent-metrics.md)."""
