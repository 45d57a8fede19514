"""PATH over time-respecting paths: no edge is older than the one before it, or each is newer.

Edges come in order of time, so a new edge can only be the last one of an ascending path. All that is needed of the
past is, for each vertex and state of the automaton, which roots reach it and until when at the latest: a *row* of
roots with expiries (`rows`). An edge takes the row of its source to that of its target, and that is all: nothing is
propagated further, but among the edges of one instant (`instants`).

A retraction removes an arrival that rows may rest upon. The valid arrivals are a log in order of time (`arrivals`);
the roots that may have used a lost one are derived again from those that they reach (`repair`).
"""
