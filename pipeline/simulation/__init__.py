"""Worlds whose truth is known: agents, customers and systems of record, played with the real OpenTelemetry SDK.

Nothing here imports anything of the pipeline that is measured, nor its schemas: a shared mistake would be no mistake.
"""
