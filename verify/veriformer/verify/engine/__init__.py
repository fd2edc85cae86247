"""Running rows: pytest collects and runs them, pytest-xdist spreads them, a journal keeps what is finished."""
