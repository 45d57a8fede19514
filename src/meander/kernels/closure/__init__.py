"""PATH by slide-batched closure: regular path queries over a sliding window, for all roots at once.

The query is the persistent regular path query of Pacaci, Bonifati and Özsu (SIGMOD 2020, "Regular Path Query
Evaluation on Streaming Graphs"): which pairs of vertices are joined by a path that an automaton accepts, until when.
A path lasts as long as its first edge to expire, a pair as long as its longest-lasting path: a widest path, over the
semiring (max, min).

Between two instants at which an input edge expires the graph only grows: that part of a batch is a *segment*. Within
a segment each edge has two expiries, `lo` and `hi`: before and after the segment's rows (for a deletion: after and
before it). Two algorithms find the answers that differ between both graphs:

- `widest_path` keeps, from segment to segment, the expiry of every (node, root) pair in a matrix (`levels`) and
  relaxes it with the segment's edges. It serves segments of growth, if the matrix is small enough.
- `bits` starts from nothing: a multi-source breadth-first search, one bit per root, over the part of the graph
  that the changes can affect (`subgraph`). It serves deletions, expiries, and graphs that are too large for a matrix.

All state follows from the window's graph. `walk` is the driver, `tables` declares every table, `segment` takes the
rows of a batch, `demand` restricts the answers to the pairs that a reader demands (sideways information passing),
`empty_path` treats the pairs (x, x) of the empty path, and `staging` collects answers and emits them by time.

A *node* is a (vertex, state of the automaton) pair, a *root* a vertex where paths start. An edge of the subgraph or
of the matrix is an input edge read by one move of the automaton.
"""
