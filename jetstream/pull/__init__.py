"""Pull consumers: the ledger of pulls, fetch and consume."""
