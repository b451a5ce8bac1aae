"""The file system port: durable operations, folders that keys cannot leave, and locks.

- `disk`: the `Disk` protocol, the system's implementation, and running blocking work in a thread.
- `keys`: the names that files may have.
- `folder`: reading and writing files of a folder by key.
- `disk_operations`: waiting for a flock, renaming without replacing, and making folders.
- `locks`: mutexes for short changes, and leases for long work.
- `lock_state`: the record of a lease, and the PID file that other programs see.
"""
