"""The file system port: folders, locks, and durable operations."""
