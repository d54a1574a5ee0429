"""Run directories: creating, executing, resuming, replaying and viewing them."""
