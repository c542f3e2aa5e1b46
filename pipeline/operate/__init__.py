"""What an operator runs beside the pipeline."""
