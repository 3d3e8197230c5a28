"""The console of a whole cluster: pages over HTTP for people, management messages to the nodes.

A process of its own (`atalanta console`). Every question and every change is a management message with the rights of
the user who has logged in.
"""
