"""Faults for the demo to find: modules that a worker loads before it starts, each of which breaks one rule."""
