"""HTTP IN FRONT OF A BROKER: events in, Server-Sent Events and WebSockets out, and all the rest.

Whoever comes in here is a client of the broker like all others, over a socket that is handed to it,
so that access, limits, queues and counters are the broker's own. This is a translation and nothing
else. It runs in a process of its own: however many requests there are, the broker goes on.

Read `door` and `front` (the broker's end), `line` (what both say), `gateway` (what answers),
`connection` (HTTP itself, with time limits), `visitors` (who is asking) and `pages` (for which
page), `routes` (what can be asked), then `publishing` and `binary`, `durables`, `commands`,
`streams`, `sockets`, and `openapi` and `asyncapi`, which say all of it to programs.
"""
