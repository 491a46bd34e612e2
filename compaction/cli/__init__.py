"""The command line: `compactd`. It speaks HTTP only, through `compaction.client`."""
