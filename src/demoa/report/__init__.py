"""A study as people read it: one page, and figures for a paper."""
