"""Modules that `trueup worker --preload` loads into the workers of a test, to make happen what luck would have to."""

SEEKS = "the engine seeks"
"""What `slow` logs whenever the engine goes to the committed offsets of a new assignment."""
