"""The command `driftline`: one file per group of commands, arguments and printing, no logic.

Data goes to standard output, everything else to standard error; `--json` gives the same data as
the table. Exit codes: 0 it ran; 1 it failed while running; 2 the command line is wrong; 3 a text
was refused; 4 data was refused (a file, an event, a parameter); 5 a broker did not answer.
"""
