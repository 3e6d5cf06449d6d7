"""The parts that the pull, push and publish machines share."""
