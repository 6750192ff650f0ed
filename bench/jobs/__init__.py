"""The jobs that are compared. Each is a program that reads one topic and prints one line of JSON."""
