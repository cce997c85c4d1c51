"""Types: internet addresses, and amounts of money, which can be changed in place."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Any

from holdfast.common.typeinfo import LogicalTypeInfo, TypeInformation, Types, register_type


@register_type
class Ipv4TypeInfo(LogicalTypeInfo):
    kind = "acme.ipv4"
    label = "IPV4"
    value_class = IPv4Address
    values_are_immutable = True
    ddl_words = ("ipv4",)
    avro_logical_types = ("ipv4",)

    @property
    def stored_as(self) -> TypeInformation:
        return Types.LONG()

    def to_stored(self, value: IPv4Address) -> int:
        return int(value)

    def from_stored(self, stored: int) -> IPv4Address:
        return IPv4Address(stored)


@dataclass
class Money:
    amount: Decimal
    currency: str


@register_type
class MoneyTypeInfo(LogicalTypeInfo):
    kind = "acme.money"
    label = "MONEY"
    value_class = Money

    @property
    def stored_as(self) -> TypeInformation:
        return Types.TUPLE([Types.DECIMAL(20, 2), Types.STRING()])

    def to_stored(self, value: Money) -> Any:
        if len(value.currency) != 3:
            raise ValueError(f"{value.currency!r} is no code of a currency, which has three letters")
        return value.amount, value.currency

    def from_stored(self, stored: Any) -> Money:
        return Money(*stored)
