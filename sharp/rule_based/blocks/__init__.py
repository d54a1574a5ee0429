"""Blocks of solver code. Programs are put together from the source of these modules, which nothing imports."""
