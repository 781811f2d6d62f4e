"""BETWEEN A BROKER AND MQTT: what comes by topics is published, what is told goes to topics.

A process of its own, which is a client on both sides: neither broker need know of the other.

config      what comes, what goes, and between whom
filters     by which topic filter a message is taken
messages    what a message says as an event, and a notification as a message
mqtt        a session with an MQTT broker, whatever becomes of connections
watching    does everything pass, and whom is waited for
running     both directions, until somebody ends it
"""
