"""Handwritten digits on Flower."""
