"""The Python of the explorer's panes. Every call takes and returns text: JSON where it is data."""
