"""Execution of rows: a plan says which, processes run them, a journal keeps what is finished."""
