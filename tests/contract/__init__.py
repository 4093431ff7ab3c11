"""What Pulsar does with one topic, and with its copy in another cluster, as far as partitions rely on it.

Each case holds on a real broker, and on the model of the simulation. A behaviour that the model has without a case is
not to be believed.
"""
