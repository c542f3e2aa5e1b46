"""Stage 3: where the versions of an outcome meet, and which conversations a business key leads to."""
