"""Objects that train, judged by laws alone: any optimizer, and any schedule of its rates."""
