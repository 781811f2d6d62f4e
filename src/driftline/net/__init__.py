"""THE REAL DRIVER: what a broker's effects mean on a machine with disks, sockets and a clock."""
