"""Managers of the HA register: a folder, etcd, ZooKeeper, and voters of our own."""
