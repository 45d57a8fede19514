"""Proofs: for each answer record the tree of tuples that it is derived from, down to edges of the input.

`search.py` finds the trees (`ProofTrees`, in `trees.py`) node by node of the result's `ProofPlan`, all tuples of one
node at a time; `texts.py` writes them as JSON.
"""
