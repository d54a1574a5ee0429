"""Metrics of agent runs: passes, tool chains, parameters and texts, as pure functions (docs/agent-metrics.md)."""
