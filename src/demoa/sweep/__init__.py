"""Studies: grids of runs, tuned, played side by side, and taken up again where they stopped."""
