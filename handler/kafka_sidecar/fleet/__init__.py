"""The other sidecars of a cluster: requests that one of them must answer go there over gRPC.

server   what others may ask of this one    peers   what this one asks of others
"""
