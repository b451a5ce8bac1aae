"""The file system port: durable operations, folders that keys cannot leave, and locks.

- `disk`: the `Disk` protocol, and the system's implementation.
- `folder`: reading and writing files of a folder by key, and the names that files may have.
- `disk_operations`: waiting for a flock, renaming without replacing, and making folders.
- `locks`: mutexes for short changes, and leases for long work.
- `lock_state`: the record of a lease, and the PID file that other programs see.
"""
