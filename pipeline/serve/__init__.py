"""HTTP out: metrics, health and the read API of a worker."""
