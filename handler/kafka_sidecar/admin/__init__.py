"""What operators ask of a running sidecar.

service   answers, over what the sidecar knows    lookup   offsets and Pulsar's message ids    command   `kafka-sidecar
          ctl`
"""
