"""Finished runs side by side, at equal accounting: what each found, what it took, and when that pays."""
