"""What candidate and tester share: messages, plain data, containers, source files. Each side checks what the other sends."""
