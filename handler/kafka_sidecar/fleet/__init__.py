"""The other sidecars of a cluster: which are there, which leads which partition, and requests passed on to them over
gRPC.

fleet         the nodes that Metadata names, and their partitions
phase         whether this sidecar starts, serves or leaves
member        one sidecar, as Kafka's clients know it
leadership    decides which member leads which partition (pure)
liveness      decides which members are advertised, and which of these lead (pure)
recent_nodes  the nodes of a moment ago, and the node ids that clients may still know (pure)
recent_members  the same, stored in the internal topic `__fleet_members`
server, peers   what other sidecars may ask of this one, and what it asks of them
rpc           gRPC services by objects with a method for each call
"""
