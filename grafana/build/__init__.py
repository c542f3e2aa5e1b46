"""Dashboards as code: typed builders in, classic JSON (schemaVersion 42) out."""
