"""Optimizers, schedules, clipping and accumulation."""
