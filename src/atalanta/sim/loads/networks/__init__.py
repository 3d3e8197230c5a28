"""Networks of brokers with failover clients of OpenWire, as subjects of simulations."""
