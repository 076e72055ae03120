"""One program for one process and for many: what ranks exchange, how they are started, and how they fail together."""
