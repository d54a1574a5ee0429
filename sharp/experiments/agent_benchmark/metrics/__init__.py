"""Metrics of agent runs: passes, tool chains and parameters, as pure functions (docs/agent-metrics.md)."""
