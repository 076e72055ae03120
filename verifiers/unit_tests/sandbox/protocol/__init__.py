"""What candidate and tester share: messages, plain data, containers, source files. Each checks what the other sends."""
