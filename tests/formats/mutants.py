"""JSON records that are right, nearly right, or broken in some way, at random."""

from __future__ import annotations

import random

from rivermouth.config.types import parse_schema

SCHEMAS = [
    "a STRING NOT NULL, i8 tinyint, u8 UInt8, i int, l bigint, u UInt64, f float, d double, b boolean, "
    "ts timestamp, n timestamp_ntz, dt date, bin binary, dec decimal(9,2), big decimal(38,10), "
    "s struct<x: int NOT NULL, y: array<string>, z: struct<q: double>>, "
    "arr array<struct<k: string NOT NULL, v: decimal(5,1), t: date>>",
    "a string, m map<string, int> NOT NULL, s struct<mm: map<string, array<double>>, x: int>, i int",
    "a string, i int",
    "m map<string, string>",
]
KEYS: list[list[str]] = [parse_schema(ddl).names for ddl in SCHEMAS]

_RIGHT = {
    "a": ['"x"', '"\\u0041\\n"', '"é😀"'],
    "i8": ["1", "-1", "1.0"],
    "u8": ["1", "255"],
    "i": ["1", "1e2"],
    "l": ["9223372036854775807", "-5"],
    "u": ["18446744073709551615", "0"],
    "f": ["1.5", "0.1", "1e-400"],
    "d": ["1.5", "-0", "1"],
    "b": ["true", "false"],
    "ts": ['"2024-01-15"', '"2024-01-15T10:30:00Z"', '"2024-01-15 10:30"', '"2024-01-15T10:30:00.5+0130"'],
    "n": ['"2024-01-15"', '"2024-01-15 10:30"'],
    "dt": ['"2024-02-29"', '"0001-01-01"'],
    "bin": ['"AQID"', '""'],
    "dec": ["1", '"1.50"', "9999999.99"],
    "big": ["1", "12345678901234567890.5"],
    "s": ['{"x":1,"y":["a",null],"z":{"q":1.5}}', '{"x":1}', "null"],
    "arr": ['[{"k":"v"},{"k":"w","v":"9999.9","t":null}]', "[]", "[null]"],
    "m": ['{"a":null}', "{}"],
}
_ANY = [
    *('"x"', '""', '"true"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"a\tb"', '"NaN, Inf"', '"NaN"'),
    *("1", "0", "-1", "256", "1.0", "1e2", "1.5", "-0.0", "1e400", "1e39", "9223372036854775808", "01", "+1"),
    *("18446744073709551616", "12345678901234567890123456789", "123456789012345678901234567890", "1" * 400),
    *("99999999.9", "10000000", "0.001", '"+1"', '".5"', '"1."', '"1e-2"', '"abc"', "1.", ".5", "0e10"),
    *("true", "false", "null", "NaN", "Infinity", "-Inf", "[]", "[1,2]", "[null]", "{}", "[[[[1]]]]"),
    *('{"x":null}', '{"x":1,"x":2}', '[{"v":1}]', '{"mm":{"a":[1,null,2.5]},"x":1}', '{"a":1,"a":2}'),
    *('{"mm":{"a":[1],"a":[2]}}', '{"a":1,"b":null}', '{"a":"x"}', '[{"k":"v","v":12.34}]'),
    *('"2024-02-30"', '"2023-02-29"', '"1900-02-29"', '"2000-02-29"', '"0000-01-01"', '"9999-12-31"'),
    *('"2024-01-15T10:30:00.1234567Z"', '"2024-01-15T10"', '"2024-01-15T10:30:00-01"', '"2024-01-15Z"'),
    *('"2024-01-15T10:30:00+24:00"', '"0001-01-01T00:00:00+01:00"', '"9999-12-31T23:59:59.999999-00:01"'),
    *('"2024-01-15T24:00:00"', '"AQI="', '"AQJ="', '"AQI"', '"%%%="', "0." + "0" * 30 + "1"),
]
_OTHER = [
    b"",
    b"null",
    b"[]",
    b"1",
    b"  ",
    b"\xef\xbb\xbf{}",
    b'"x"',
    b"{}{}",
    b"nul",
    b"\x00",
    b"{}\n{}",
    None,
]


def mutant(source: random.Random, keys: list[str], *, wild: bool = False) -> bytes | None:
    """One record: keys left out or doubled, values exchanged, and sometimes bytes changed."""
    if source.random() < 0.02:
        return source.choice(_OTHER)
    chosen = [key for key in keys if source.random() < 0.6]
    if "a" in keys and "a" not in chosen and source.random() < 0.8:
        chosen.append("a")
    if source.random() < 0.15:
        chosen.append(source.choice(["zz", "", "NaN", "i", "a", "\\u0061", "\\u006d"]))
    source.shuffle(chosen)
    strange = source.choice([0, 0, 0.03, 0.3])

    def blank() -> str:
        return source.choice(["", "", "", "", " ", "\n", "\t", "\r\n"])

    def value(key: str) -> str:
        return source.choice(_ANY if source.random() < strange else _RIGHT.get(key, _ANY))

    members = (f'{blank()}"{key}"{blank()}:{blank()}{value(key)}{blank()}' for key in chosen)
    text = bytearray((blank() + "{" + ",".join(members) + "}" + blank()).encode())
    if source.random() < (0.5 if wild else 0.1):
        for _ in range(source.choice([1, 1, 2, 5])):
            _damage(source, text)
    return bytes(text)


def _damage(source: random.Random, text: bytearray) -> None:
    place = source.randrange(len(text) + 1)
    kind = source.randrange(5)
    if kind == 0:
        del text[place : place + 1]
    elif kind == 1:
        text[place : place + 1] = bytes([source.randrange(256)])
    elif kind == 2:
        text.insert(place, source.choice(b'{}[]",:\\\n \x00\xff0-eNI'))
    elif kind == 3:
        del text[place:]
    else:
        text[place:place] = text[: source.randrange(len(text) + 1)]
