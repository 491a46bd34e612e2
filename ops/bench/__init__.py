"""Measurements that anybody can repeat, one program each."""
