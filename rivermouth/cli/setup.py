"""`rivermouth setup`: do now what would make the first start slow."""

from __future__ import annotations

from rich.console import Console

from rivermouth.errors import SetupError
from rivermouth.spark import jars, session


def setup() -> None:
    """Fetch the jars Spark needs into the user's cache, and prepare Java to start it quickly."""
    console = Console(stderr=True, highlight=False)
    with console.status("looking for the jars") as status:

        def show(message: str) -> None:
            status.update(message)
            if not console.is_terminal:
                console.print(message, soft_wrap=True)

        files = jars.ensure(progress=show)
        megabytes = sum(path.stat().st_size for path in files) / 1e6
        console.print(f"{len(files)} jars ({megabytes:.0f} MB) are in {jars.folder()}", soft_wrap=True)
        if not session.is_prepared():
            show("starting Spark once, so that later starts take half as long")
            try:
                session.prepare()
            except SetupError as error:  # only a loss of speed
                console.print(str(error), soft_wrap=True)
