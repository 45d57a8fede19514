"""What a run reads: the ledger of input files, their readers, and the chunks that they become."""
