"""The definitions again, brute force, from the spec alone: what the pipeline is held against."""
