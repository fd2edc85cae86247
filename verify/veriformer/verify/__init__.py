"""Properties that bind any implementation to the specification."""
