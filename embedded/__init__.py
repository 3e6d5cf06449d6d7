"""What goes on a device: the list of files, and the build that makes them small."""
