"""compactd's library: what a compaction is, without a queue, a database or a web server.

`core` decides, `pipeline` and `auto` walk the steps over the ports of `ports`, the other packages are adapters.
"""

__version__ = "0.1.0"
