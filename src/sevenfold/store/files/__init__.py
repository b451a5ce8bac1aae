"""The file system port: durable operations, folders that keys cannot leave, and locks.

- `disk`: the `Disk` protocol, the system's implementation, and what is built on both: waiting for a flock,
  renaming without replacing, making folders.
- `folder`: reading and writing files of a folder by key, and the names that files may have.
- `locks`: mutexes for short changes, and leases for long work.
- `lock_state`: the record of a lease, and the PID file that other programs see.
"""
