"""A dashboard's JSON as a picture, without a Grafana server: a tool for developers, and for the README's picture."""
