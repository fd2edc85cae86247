"""Losses and metrics: cross-entropy in its forms, squared errors, perplexity, calibration."""
