"""Replication of the journal: the active node streams blocks, followers store them, and the commit point follows.

A journal is a sequence of records with ascending lsn. The active node appends, and sends every block to its
followers when it gives it to its own disk. Each follower answers what is durable. The commit point is the lowest of
these answers and of the own durable lsn, over all required members. Up to the commit point, and no further, the node
confirms, delivers, forwards over bridges, compacts and deletes.

Required is every member that might be in the in-sync set: as the register is known, as a write of unknown outcome
would make it, and those that are about to be added. So a member is required before the register adds it, and until
its removal is known.

An epoch begins with its own entry in the epoch table: (epoch, first lsn). Only one process appends in an epoch. So
two journals are equal up to the end of their last common epoch, and what a returning member has beyond that is cut:
it was never confirmed, unless an operator forced an epoch.

`Follower` and `Active` are the two states of a member. Their methods take the time and return actions, in order. A
shell executes them, and makes a new `Follower` from the recovered journal when an `Active` has stopped.
"""
