"""`python -m pipeline` is `trueup`."""

from pipeline.cli import main

main()
