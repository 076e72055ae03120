"""How results reach the disk: whole, strict and never overwritten unasked."""
