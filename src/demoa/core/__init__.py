"""What every layer stands on: errors, random streams, types, worker threads."""
