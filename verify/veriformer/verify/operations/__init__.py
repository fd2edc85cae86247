"""Operations: one folder per area of the contract, one file or folder per operation with its record and its laws."""
