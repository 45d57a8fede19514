"""A cell: its job, its step, and what outlives its worker."""
