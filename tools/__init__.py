"""What keeps this repository true: set-up, lock, layers, generated files."""
