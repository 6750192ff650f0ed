"""Small connectors, so that the config is tested apart from the real sources."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import Field, model_validator

from rivermouth.config.model import Model
from rivermouth.config.values import Integer, TextMap, problem


class Consumer(Model):
    """A nested part of a connector's keys."""

    group: str = Field(description="Its group.")
    threads: Integer = Field(default=1, ge=1, description="Its threads.")


class KafkaLike(Model):
    """Keys like those of Kafka."""

    bootstrap_servers: str = Field(description="Where.")
    topics: list[str] | None = Field(default=None, description="Which.")
    topic_pattern: str | None = Field(default=None, description="Which, as a pattern.")
    starting_offsets: Literal["earliest", "latest"] | dict[str, dict[int, int]] = Field(
        default="earliest", description="`earliest`, `latest`, or offsets by topic and partition."
    )
    password: str | None = Field(default=None, min_length=8, description="A secret.")
    consumer: Consumer | None = Field(default=None, description="How.")
    options: TextMap = Field(default_factory=dict, description="Anything else.")

    @model_validator(mode="after")
    def _one_of(self) -> KafkaLike:
        if self.topics is not None and self.topic_pattern is not None:
            raise problem("ConflictingKeys", "topics is given as well", key="topic_pattern", hint="keep one")
        if "," in self.bootstrap_servers and " " in self.bootstrap_servers:
            raise ValueError(f"a blank in {self.bootstrap_servers}")
        return self


class GeneratorLike(Model):
    """Keys like those of the generator: none is required."""

    count: Integer = Field(default=10, ge=0, description="How many.")


CONNECTORS: dict[str, type[Model]] = {"kafka": KafkaLike, "generator": GeneratorLike}


@pytest.fixture
def connectors() -> dict[str, type[Model]]:
    return CONNECTORS
