"""CONNECTED TO A BROKER: publish, subscribe, be told; from a program that is elsewhere.

    connect ──▶ Client ──publish──▶ Publisher      what was published and is not acknowledged yet
                  ├────subscribe──▶ Subscription   what it was told, and what it asks for by now
                  └──────────────▶ Channel         frames on a connection that is made again

Reading order: address, channel, publisher, subscription, client; waiting makes a program of
ordinary calls of it.
"""
