"""What a round costs."""
