"""What runs inside the sandbox, before the untrusted code: the standard library alone, and nothing of hpc."""
