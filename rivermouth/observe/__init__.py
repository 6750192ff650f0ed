"""What a pipeline tells: events, and the log lines, metrics, health and display made of them."""

from rivermouth.observe.observer import Observer

__all__ = ["Observer"]
