"""Start real servers on this machine from Maven jars: for the demo, the tests and the bench.

`jars` resolves a class path, `process` runs a JVM, `pulsar` knows how a Pulsar standalone of each
version wants to be started, `cluster` starts two brokers, `kafka` one KRaft node.
"""
