"""Finished and unfinished runs side by side: `sharp compare`."""
