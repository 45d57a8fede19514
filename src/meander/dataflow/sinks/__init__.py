"""Sinks: where answers go.

`sink` is the protocol, `registry` maps a target to its class, and each other module is one kind of output. Both
runners write through them: the local runner with `writer`, Spark with a journal in the checkpoint.
"""
