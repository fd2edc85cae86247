"""One folder per area of the contract, one file or folder per operation: its record and its laws."""
