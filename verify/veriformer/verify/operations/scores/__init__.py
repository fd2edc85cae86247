"""Scores to decisions: softmax, losses, calibration."""
