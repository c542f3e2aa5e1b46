"""The rules: every step of the flow as a pure object. Knows no clock, network, broker or database."""
