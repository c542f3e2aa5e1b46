"""HTTP in: spans and logs as OTLP, outcomes as JSON; each is in Kafka before it is answered."""
