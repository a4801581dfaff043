"""An app of NumPy alone, whose clients start quickly."""
