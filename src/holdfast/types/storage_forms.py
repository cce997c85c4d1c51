"""How values of every type look inside stored bytes.

A form packs a value into its stored value, checking its class on the way, and unpacks it again. Forms nest as types
do. What is plain already (numbers, text, bytes, and tuples, lists and dicts of these) passes through as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from holdfast.types import pickling
from holdfast.types.qualified_names import qualified_name
from holdfast.types.row import Row
from holdfast.types.storage_scalars import Form, Mismatch

if TYPE_CHECKING:
    from holdfast.types.contract import TypeInformation


def pickled_form(type_info: TypeInformation) -> Form:
    def pack(value: Any) -> bytes:
        try:
            return pickling.dumps(value)
        except Exception as error:  # whatever the methods of the value's class raise
            raise Mismatch(type_info, value, f", which cannot be pickled ({error})") from error

    return Form(bytes, pack, pickling.loads, framed=False)


def _any_ranged(*forms: Form) -> bool:
    return any(form.ranged for form in forms)


def _array_type(fields: Sequence[Form]) -> Any:
    return tuple.__class_getitem__(tuple(field.stored_type | None for field in fields))


def tuple_form(type_info: TypeInformation, fields: Sequence[Form]) -> Form:
    plain = tuple(field.plain for field in fields)
    packs = [field.pack for field in fields]

    def pack(value: Any) -> Any:
        if not isinstance(value, tuple):
            raise Mismatch(type_info, value)
        if tuple(map(type, value)) == plain:
            return value
        _check_size(type_info, value, len(packs))
        pairs = zip(packs, value, strict=True)
        return tuple([None if part is None else pack_field(part) for pack_field, part in pairs])

    unpack = _unpack_fields(fields, tuple)
    return Form(_array_type(fields), pack, unpack, plain_fields=plain, ranged=_any_ranged(*fields))


def row_form(
    type_info: TypeInformation,
    fields: Sequence[Form],
    names: tuple[str, ...],
    named: bool,
    make: Callable[[Any], Any],
) -> Form:
    """Rows keep their values in the order of the type; the row kind is not stored. Rows of other names than those of
    the type are refused where its fields are ``named``, and taken by position elsewhere.
    """
    plain = tuple(field.plain for field in fields)
    packs = [field.pack for field in fields]

    def pack(value: Any) -> Any:
        if not isinstance(value, (Row, tuple)):
            raise Mismatch(type_info, value)
        if isinstance(value, Row) and value._fields not in (None, names):
            if set(value._fields or ()) == set(names):
                value = value.get_fields_by_names(names)
            elif named:
                raise Mismatch(type_info, value)
        if tuple(map(type, value)) == plain:
            return tuple(value)
        _check_size(type_info, value, len(packs))
        pairs = zip(packs, value, strict=True)
        return tuple([None if part is None else pack_field(part) for pack_field, part in pairs])

    return Form(_array_type(fields), pack, _unpack_fields(fields, make) or make, ranged=_any_ranged(*fields))


def _check_size(type_info: TypeInformation, value: Sequence[Any], size: int) -> None:
    if len(value) != size:
        raise Mismatch(type_info, value, f", which has {len(value)} fields instead of {size}")


def _unpack_fields(fields: Sequence[Form], make: Callable[[list[Any]], Any]) -> Callable[[Any], Any] | None:
    """None where no field needs it: then the stored tuple holds the values."""
    unpacks = [field.unpack for field in fields]
    if not any(unpacks):
        return None

    def unpack(stored: Any) -> Any:
        pairs = zip(unpacks, stored, strict=True)
        return make([part if part is None or read is None else read(part) for read, part in pairs])

    return unpack


def instance_form(
    type_info: TypeInformation,
    fields: Sequence[Form],
    names: Sequence[str],
    class_name: str,
    make: Callable[[Any], Any],
) -> Form:
    """Stored as a row of the same fields, so that the values can be read when the class is gone."""
    packs = [field.pack for field in fields]
    values_of = _values_getter(names)

    def pack(value: Any) -> Any:
        # A class of the main program is another object in every process, so its name counts.
        if qualified_name(type(value)) != class_name:
            raise Mismatch(type_info, value)
        pairs = zip(packs, values_of(value), strict=True)
        return tuple([None if part is None else pack_field(part) for pack_field, part in pairs])

    return Form(_array_type(fields), pack, _unpack_fields(fields, make) or make, ranged=_any_ranged(*fields))


def _values_getter(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    if len(names) == 1:
        return lambda value: (getattr(value, names[0]),)
    return attrgetter(*names)


def elements_form(type_info: TypeInformation, element: Form) -> Form:
    plain, pack_element, unpack_element = {element.plain}, element.pack, element.unpack

    def pack(value: Any) -> Any:
        if not isinstance(value, list):
            raise Mismatch(type_info, value)
        if plain.issuperset(map(type, value)):
            return value
        return [None if part is None else pack_element(part) for part in value]

    def unpack(stored: Any) -> Any:
        return [part if part is None else unpack_element(part) for part in stored]  # type: ignore[misc]  # it is set

    stored_type = list.__class_getitem__(element.stored_type | None)
    return Form(stored_type, pack, unpack if unpack_element else None, ranged=element.ranged)


def map_form(type_info: TypeInformation, key: Form, value_form: Form) -> Form:
    """A dict where its keys are plain; otherwise a list of pairs, because stored keys need not be hashable."""
    unpack_key, unpack_value = key.unpack, value_form.unpack
    key_plain, value_plain = {key.plain}, {value_form.plain}
    ranged = _any_ranged(key, value_form)

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise Mismatch(type_info, value)

    def pack_value(value: Any) -> Any:
        return None if value is None else value_form.pack(value)

    def pack_dict(value: Any) -> Any:
        check(value)
        if key_plain.issuperset(map(type, value)) and value_plain.issuperset(map(type, value.values())):
            return value
        return {key.pack(name): pack_value(part) for name, part in value.items()}

    def pack_pairs(value: Any) -> Any:
        check(value)
        return [(key.pack(name), pack_value(part)) for name, part in value.items()]

    def unpack(stored: Any) -> Any:
        pairs = stored.items() if isinstance(stored, dict) else stored
        return {
            name if unpack_key is None else unpack_key(name): part
            if part is None or unpack_value is None
            else unpack_value(part)
            for name, part in pairs
        }

    if key.plain is not None:
        stored_dict = dict.__class_getitem__((key.stored_type, value_form.stored_type | None))
        return Form(stored_dict, pack_dict, unpack if unpack_value else None, ranged=ranged)
    pair = tuple.__class_getitem__((key.stored_type, value_form.stored_type | None))
    return Form(list.__class_getitem__(pair), pack_pairs, unpack, ranged=ranged)
