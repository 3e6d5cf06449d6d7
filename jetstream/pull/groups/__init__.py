"""Partitioned consumer groups: strict order for each key, and members that work in parallel.

The messages of a stream are divided into partitions by a key in their subjects. Each member of a
group has some of the partitions, and a consumer of its own for them, so that messages of different
keys are processed at the same time, and those of one key one after the other. Names, keys and
configurations are those of pcgroups in orbit.go, so a group may have members in both languages.

    names.py       buckets, keys, consumers and streams
    config.py      the configurations, as they are stored
    partitions.py  which member has which partitions
    message.py     a message without the partition in its subject
    membership.py  the machine: when a member creates, leaves and deletes its consumer
    feed.py        the machine: when to read the configuration
    plan.py        the consumer of a member
    actor.py       executes the decisions of the machines
    member.py      the iteration
    group.py       join, change and delete a group
    api.py         create and find groups
"""
