"""Where results go: rows to ClickHouse, gauges to Prometheus."""
