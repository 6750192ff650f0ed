"""Fetch the jars Spark needs, once, into the user's cache; afterwards no network is needed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from rivermouth.errors import SetupError
from rivermouth.spark import cache, java, truststore

_UNTRUSTED = re.compile(r"PKIX|SSLHandshake|unable to find valid certification", re.IGNORECASE)

Progress = Callable[[str], None]

DEFINITION = Path(__file__).with_name("ivy.xml")
_SETTINGS = Path(__file__).with_name("ivysettings.xml")
_LISTING = "jars.json"


def ensure(
    confs: Sequence[str] = ("delta", "kafka"),
    progress: Progress | None = None,
    *,
    definition: Path = DEFINITION,
) -> list[Path]:
    """The jars of these confs as local files, fetched first if this machine does not have them."""
    home = folder(definition)
    if missing(confs, definition):
        with cache.locked(cache.directory() / "jars.lock"):
            # Asked again: another process may have fetched them while this one waited.
            wanted = missing(confs, definition)
            if wanted:
                _fetch(home, wanted, definition, progress or (lambda _: None))
    return sorted({path.name: path for conf in confs for path in _listed(home / conf) or []}.values())


def missing(confs: Sequence[str], definition: Path = DEFINITION) -> list[str]:
    """The confs whose jars are not all here."""
    return [conf for conf in confs if _listed(folder(definition) / conf) is None]


def folder(definition: Path = DEFINITION) -> Path:
    """Where the jars of a definition are kept; a changed definition gets a folder of its own."""
    key = sha256(definition.read_bytes()).hexdigest()[:12]
    return cache.directory() / "jars" / key


def _listed(place: Path) -> list[Path] | None:
    """The jars of one conf, or None unless every one is there at its full size."""
    try:
        sizes: dict[str, int] = json.loads((place / _LISTING).read_text(encoding="utf-8"))
        if all((place / name).stat().st_size == size for name, size in sizes.items()):
            return [place / name for name in sizes]
    except (OSError, ValueError):
        pass
    return None


def _fetch(home: Path, confs: Sequence[str], definition: Path, progress: Progress) -> None:
    """Resolve with the Ivy that pyspark ships, beside the final place, and move the result there whole."""
    cache.make(home)
    ivy = cache.make(cache.directory() / "ivy")
    staging = Path(tempfile.mkdtemp(prefix=".fetch-", dir=home))
    try:
        _run_ivy(confs, definition, ivy, staging, progress)
        for conf in confs:
            place = staging / conf
            sizes = {path.name: path.stat().st_size for path in sorted(place.glob("*.jar"))}
            (place / _LISTING).write_text(json.dumps(sizes, indent=1), encoding="utf-8")
            # A damaged folder of before must go first: a directory cannot be renamed over a full one.
            shutil.rmtree(home / conf, ignore_errors=True)
            place.rename(home / conf)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    # Ivy's copies were only of use to continue an interrupted fetch.
    shutil.rmtree(ivy, ignore_errors=True)


def _run_ivy(confs: Sequence[str], definition: Path, ivy: Path, staging: Path, progress: Progress) -> None:
    import pyspark

    settings = Path(os.environ.get("RIVERMOUTH_IVY_SETTINGS") or _SETTINGS)
    if not settings.is_file():
        raise SetupError(
            f"RIVERMOUTH_IVY_SETTINGS names {settings}, which is not a file",
            hint="name an Ivy settings file, or unset the variable to use the default",
        )
    progress("asking for the list of jars")
    arguments = [
        *_proxy_options(),
        f"-Divy.default.ivy.user.dir={ivy}",
        *("-cp", str(Path(pyspark.__file__).parent / "jars" / "*")),
        "org.apache.ivy.Main",
        *("-settings", str(settings.absolute())),
        *("-ivy", str(definition.absolute())),
        *("-cache", str(ivy / "cache")),
        *("-confs", *confs),
        *("-retrieve", f"{staging}/[conf]/[artifact]-[revision](-[classifier]).[ext]"),
    ]

    code, said = _run_java(arguments, staging, progress)
    if code and _UNTRUSTED.search("\n".join(said)):
        progress("asking again, with the certificates of this machine")
        shutil.rmtree(ivy / "cache", ignore_errors=True)  # Ivy remembers what it did not find
        code, said = _run_java([*truststore.options(staging), *arguments], staging, progress)
    if code or not all(any((staging / conf).glob("*.jar")) for conf in confs):
        raise SetupError(
            f"the jars for {', '.join(confs)} could not be fetched: {_complaint(said)}",
            hint="check the network (HTTPS_PROXY and SSL_CERT_FILE are honoured), or let "
            "RIVERMOUTH_IVY_SETTINGS name an Ivy settings file for your mirror, then run `rivermouth setup`",
        )


def _run_java(arguments: Sequence[str], folder: Path, progress: Progress) -> tuple[int, list[str]]:
    """Run Ivy, tell its progress, and give its exit code and what it said."""
    said: deque[str] = deque(maxlen=400)
    with subprocess.Popen(
        [str(java.find().executable), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=folder,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.strip())
            message = _progress_of(line)
            if message:
                progress(message)
    return process.returncode, list(said)


def _progress_of(line: str) -> str | None:
    found = re.match(r"\s+found [^#]+#([^;]+);(\S+)", line)
    if found:
        return f"found {found.group(1)} {found.group(2)}"
    fetching = re.match(r"downloading \S*/([^/\s]+\.jar)", line)
    return f"fetching {fetching.group(1)}" if fetching else None


def _complaint(said: Sequence[str]) -> str:
    """The few lines of Ivy's output that say what went wrong."""
    lines = [re.sub(r"^:+\s*|\s*:+$", "", line).strip() for line in said]
    telling = [
        line
        for line in lines
        if re.search(r"not found|unresolved|exception|refused|timed? ?out|failed|denied|error", line, re.I)
        and not line.upper().startswith(("UNRESOLVED DEPENDENCIES", "ERRORS"))
    ]
    telling.sort(key=lambda line: "not found" in line)  # that it was not found is the least of the reasons
    chosen = list(dict.fromkeys(telling))[:4] or [line for line in lines if line][-3:]
    return "; ".join(chosen) or "Ivy said nothing"


def _proxy_options() -> list[str]:
    """What pip takes from the environment, in Java's words, so that both go through the same proxy."""
    options: list[str] = []
    for scheme in ("http", "https"):
        address = os.environ.get(f"{scheme}_proxy") or os.environ.get(f"{scheme.upper()}_PROXY")
        parts = urlsplit(address if address and "://" in address else f"//{address or ''}")
        if parts.hostname:
            options.append(f"-D{scheme}.proxyHost={parts.hostname}")
            options.append(f"-D{scheme}.proxyPort={parts.port or 80}")
    direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    if options and direct:
        hosts = [host.strip() for host in direct.split(",") if host.strip()]
        pattern = "|".join(f"*{host}" if host.startswith(".") else host for host in hosts)
        options.append(f"-Dhttp.nonProxyHosts={pattern}")
    return options
