"""What the type hints of kio's schemas say."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin


def split_type(hint: Any) -> tuple[Any, bool, bool]:
    """The bare type of a field, whether it is an array, whether it may be null."""
    optional = False
    if get_origin(hint) in (Union, UnionType):
        optional = True
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is tuple:
        return get_args(hint)[0], True, optional
    return hint, False, optional
