"""Costs of an implementation against the predictions of the specification."""
