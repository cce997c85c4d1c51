"""How deep classes stand: who reads one should not have to read ten."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import holdfast

#: Levels, the class itself among them.
DEEPEST = 5


def own_classes() -> set[type]:
    """All classes of the tree but exceptions, whose tree is for those who catch them (see ``errors.py``)."""
    modules = [importlib.import_module(module.name) for module in pkgutil.walk_packages(holdfast.__path__, "holdfast.")]
    members = [one for module in modules for _, one in inspect.getmembers(module, inspect.isclass)]
    return {one for one in members if _of_the_tree(one) and not issubclass(one, BaseException)}


def _of_the_tree(found: type) -> bool:
    return found.__module__.split(".")[0] == "holdfast"


def depth(found: type) -> int:
    """The longest way up, counting classes of the tree alone: ``object``, ``ABC``, ``Generic``, ``Protocol`` and what
    else comes from outside is known to everybody.
    """
    return 1 + max((depth(base) for base in found.__bases__ if _of_the_tree(base)), default=0)


def test_what_counts() -> None:
    class Outside(dict[str, int]): ...

    class Inside(Outside): ...

    Outside.__module__ = Inside.__module__ = "holdfast.somewhere"
    assert (depth(Outside), depth(Inside)) == (1, 2)


def test_no_class_stands_deeper_than_five_levels() -> None:
    classes = own_classes()
    assert len(classes) > 1000
    too_deep = {f"{one.__module__}.{one.__qualname__}": depth(one) for one in classes if depth(one) > DEEPEST}
    assert not too_deep, "compose them of parts instead"
