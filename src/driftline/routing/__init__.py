"""Who must hear of it? Routing of interest and of events between brokers [SIENA §4–5].

A broker has *interfaces*: its local parties, the servers that are its clients, its master, its
peers, and the mesh it may belong to. Each has said which filters it wants; what is told to an
interface is what the others want, pruned by covering. Read `table` first, then `topology`.
"""
