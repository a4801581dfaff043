"""The command line: `demoa run`, `demoa compare`, `demoa list`, `demoa data`, `demoa majority`."""
