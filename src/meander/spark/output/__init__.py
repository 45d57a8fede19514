"""What a run writes: answers on their way from a cell to a sink."""
