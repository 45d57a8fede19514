"""A checkpoint: what it belongs to, the small files that Meander writes into it, and its lock."""
