"""Groups that Pulsar can see: commits move a Pulsar subscription of the group's name, and a subscription's position is
where a group without commits begins. An application moves from one kind of client to the other and goes on where it was.
"""
