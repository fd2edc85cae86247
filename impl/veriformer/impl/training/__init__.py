"""Training: from a text to a model, to be stopped and resumed at any step."""
