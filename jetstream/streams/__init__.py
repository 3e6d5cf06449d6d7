"""Create, find, update and list streams and consumers; the handles to them."""
