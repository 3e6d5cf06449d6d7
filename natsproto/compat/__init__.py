"""Layers with the names of other clients, on top of natsproto and jetstream.

This room is outside the order of rooms: it is a program on top of both packages, and nothing
imports it but its users.
"""
