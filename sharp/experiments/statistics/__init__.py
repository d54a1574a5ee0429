"""What may be said of repeated runs: spread, geometric means, paired comparison, evaluations to reach an error."""
