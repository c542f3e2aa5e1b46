"""What attributes mean: one table for each instrumentation, and the engine that reads spans by a table."""
