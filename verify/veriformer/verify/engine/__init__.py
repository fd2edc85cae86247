"""Running rows: pytest collects and runs them, pytest-xdist spreads them over processes, a journal keeps what is finished."""
