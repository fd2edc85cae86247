"""Whole models, which are judged by laws alone."""
