"""A suite that tries to make "verified" a lie: problems with known solutions, half of them sabotaged."""
