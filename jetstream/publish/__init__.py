"""Publishing: single messages, windows, atomic and fast batches."""
