"""Looking at what was sent, and at verdicts, without running the pipeline."""
