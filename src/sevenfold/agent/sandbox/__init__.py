"""The small program that starts a command, holds it, and sees to it that nothing of it stays behind.

It runs once for every command, so that what it imports is paid each time: `ctypes` and a few modules written
in C. `dataclasses` and `typing` alone would double its start.
"""
