"""Objects of the user's own, named by where they can be imported from."""

from __future__ import annotations

import importlib
from typing import Any

from demoa.core.errors import ConfigError


def is_import_path(name: str) -> bool:
    """Say whether a name is of the form package.module:object.

    >>> is_import_path("my_code.models:Net")
    True
    """
    return ":" in name


def imported(kind: str, path: str) -> Any:
    """Return the object at package.module:object, or raise ConfigError.

    >>> imported("function", "math:sqrt")(9.0)
    3.0
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the code of others may raise when it is imported
        raise ConfigError(
            f"{kind} {path!r} cannot be imported: {error}; write package.module:name, of a module that Python finds "
            "(set PYTHONPATH to its folder)"
        ) from error
