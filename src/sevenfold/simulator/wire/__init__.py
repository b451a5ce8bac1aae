"""Requests and responses of the simulated Messages API."""
