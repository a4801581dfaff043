"""Rules, mixings, the table that they work on, and the stores that hold the rows."""
