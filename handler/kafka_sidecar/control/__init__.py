"""The sidecar's gRPC services, and the client of the Admin service.

client  for Python programs    v1/  made of grpc/kafka_sidecar/control/v1 by `make proto`
"""
