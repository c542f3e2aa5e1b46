"""Contracts as the rules use them: compiled expressions, the version in force, the family that spans belong to."""
