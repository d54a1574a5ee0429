"""`python -P -m sharp.cli`: the same as the `sharp` command."""

from sharp.cli import main

main()
