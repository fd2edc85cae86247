"""What a model is judged by: cross-entropy in its forms, squared errors, perplexity, calibration."""
