"""The disk. Everything durable goes through `disk.Disk`, every name through `folder.Folder`."""
