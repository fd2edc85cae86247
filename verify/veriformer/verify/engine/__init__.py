"""Execution of rows: a plan lists them, processes run them, a journal keeps finished ones."""
