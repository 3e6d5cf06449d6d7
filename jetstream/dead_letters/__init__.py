"""Dead letters: the messages that a consumer has failed to process."""
