"""The toolkit: setting a problem up, solving it, checking the solution, showing it."""
