"""What calls the core: live over Kafka and Faust, or in one process without a broker."""
