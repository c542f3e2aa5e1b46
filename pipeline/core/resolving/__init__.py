"""Stage 2: which conversation a trace belongs to; spans are held until it is known."""
