"""From the results to what a reader sees: tables, plots, and the page."""
