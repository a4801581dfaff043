"""Runs: what they are, how they are built, and how they are played."""
