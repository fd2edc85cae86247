"""Forms of schedules of rates."""
