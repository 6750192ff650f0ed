"""`rivermouth setup`: fetch what a first start would fetch, now."""

from __future__ import annotations

from rich.console import Console

from rivermouth.spark import jars


def setup() -> None:
    """Fetch the jars Spark needs into the user's cache; without them the first start does it."""
    console = Console(stderr=True, highlight=False)
    confs = ("delta", "kafka")
    if not jars.missing(confs):
        console.print(f"the jars are in {jars.folder()}", soft_wrap=True)
        return
    with console.status("looking for Java") as status:

        def show(message: str) -> None:
            status.update(message)
            if not console.is_terminal:
                console.print(message, soft_wrap=True)

        files = jars.ensure(confs, show)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    console.print(f"fetched {len(files)} jars ({megabytes:.0f} MB) into {jars.folder()}", soft_wrap=True)
