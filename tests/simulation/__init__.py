"""Real partitions of several sidecars over a modelled Pulsar, in virtual time, under faults that a seed decides.

    plan          what is going to happen: the bounds, the clients, the faults
    loop          virtual time; each callback belongs to a process, which may stand still or be killed
    topic         the log in Pulsar (tests/model)
    snapshot_log    __kept_states: what sidecars keep of logs, compacted while they read it
    conduct       how the network and the broker behave: what takes how long, what lands late and what is lost
    sidecar       a process: what its partitions share
    node          one partition in one sidecar
    clients       producers and consumers, which note what they were told
    transactions  transactional producers, and their coordinator
    reference     the log folded once more from its beginning, by other code and without any bound
    checker       what was told, against what the reference finds
    partition_run what happens to one partition, and what must hold of it in the end
    run           one run; `python -m tests.simulation.run --help`
    tally         how often what a run is for has happened
    shrink        a plan that fails, made smaller; `regressions/` keeps those that were found
    mutants       planted faults that the simulation must find
    replaced      a method of the product that is another for a while

Whatever is drawn is drawn from a stream that has a name (`chance`), so one decision does not depend on how often others
were drawn.
"""
