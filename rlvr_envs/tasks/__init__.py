"""The data sets of the environments that have an id, one file each."""
