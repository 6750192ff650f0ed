"""What Spark may say, and where: nothing on the terminal unless asked, errors in a small rolling file."""

from __future__ import annotations

from pathlib import Path

# The gateway's logger is named because Spark announces it when its level differs from the root's.
_COMMON = """\
status = off
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
"""

_CONSOLE = """\
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""

# A sink that is retried for days must not fill the disk with Spark's stack traces.
_FILE = """\
appender.out.type = RollingFile
appender.out.name = out
appender.out.fileName = ${sys:rivermouth.log}
appender.out.filePattern = ${sys:rivermouth.log}.%i
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
appender.out.policies.type = Policies
appender.out.policies.size.type = SizeBasedTriggeringPolicy
appender.out.policies.size.size = 4MB
appender.out.strategy.type = DefaultRolloverStrategy
appender.out.strategy.max = 1
"""


def configure(folder: Path, verbose: bool) -> list[str]:
    """Write a log4j configuration and return the JVM options that name it."""
    configuration = folder / "log4j2.properties"
    text = _COMMON.format(level="warn" if verbose else "error") + (_CONSOLE if verbose else _FILE)
    configuration.write_text(text, encoding="utf-8")
    return [
        f"-Dlog4j2.configurationFile={configuration.as_uri()}",
        f"-Drivermouth.log={folder / 'spark.log'}",
    ]
