"""The engine room: Java, jars, the session and its workers."""
