"""Between a gradient and a step."""
