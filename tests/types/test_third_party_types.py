"""Types that another package adds: found by their entry point, kept in every backend, restored, and refused clearly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from acme_streams.types import Ipv4TypeInfo, Money, MoneyTypeInfo

from holdfast.common.typeinfo import LogicalTypeInfo, TypeInformation, Types, register_type
from holdfast.datastream import KeyedProcessFunction, RuntimeContext
from holdfast.errors import ProgramError, RowTypeError, StateMigrationError, StateTypeError
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.state.keys import KeyCodec
from holdfast.state.serializers import serializer_for
from holdfast.testing import KeyedOperatorHarness
from holdfast.types.arrow import row_writer, schema_of
from holdfast.types.avro import avro_type
from holdfast.types.ddl import parse_ddl
from holdfast.types.resolve import resolve
from tests.kit.installed import ACME, describe
from tests.types.samples import TypeSample

IPV4, MONEY = Ipv4TypeInfo(), MoneyTypeInfo()
HOST, OTHER = IPv4Address("10.0.0.1"), IPv4Address("255.255.255.255")

#: Rows of the table of all types (test_facets.py).
ACME_TYPES: dict[str, TypeSample] = {
    "IPV4": TypeSample(
        IPV4, [HOST, OTHER], ddl=["ipv4", "IPv4"], python=[IPv4Address], avro=[{"type": "long", "logicalType": "ipv4"}]
    ),
    "MONEY": TypeSample(MONEY, [Money(Decimal("1.50"), "EUR"), Money(Decimal("-3.00"), "CHF")], python=[Money]),
}

MODULE = ACME / "src" / "acme_streams" / "types.py"
ENTRY_POINTS = """[holdfast.types]
acme.ipv4 = acme_types:Ipv4TypeInfo
acme.money = acme_types:MoneyTypeInfo
"""
#: What a process asks that has imported nothing of the package.
ASKS = {
    "a stored form": "TypeInformation.from_json({'kind': 'acme.ipv4'})",
    "DDL": "resolve('a INT, b ARRAY<ipv4>').field_types[1].element_type",
    "a class of Python": "resolve(__import__('ipaddress').IPv4Address)",
    "a logical type of Avro": "resolve('{\"type\": \"long\", \"logicalType\": \"ipv4\"}')",
}


def ask(directory: Path, what: str) -> str:
    """What a process prints that finds what is in a directory."""
    program = (
        "import sys\nfrom holdfast.common.typeinfo import TypeInformation, resolve\n"
        f"assert not {{'acme_types', 'acme_streams'}} & sys.modules.keys()\nprint({what})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{directory}:{':'.join(sys.path)}"},
    )
    return ran.stdout + ran.stderr


def install(directory: Path, entry_points: str) -> None:
    """As an installer leaves a package of one module: that, and its metadata beside it."""
    (directory / "acme_types.py").write_text(MODULE.read_text())
    info = directory / "acme_types-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-types\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.mark.parametrize("what", ASKS.values(), ids=ASKS.keys())
def test_an_installed_type_is_found_by_each_of_its_names(tmp_path: Path, what: str) -> None:
    describe(ACME, tmp_path)
    assert ask(tmp_path, what) == "IPV4\n"


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path) -> None:
    said = ask(tmp_path, ASKS["a stored form"])
    assert "Unknown kind of type 'acme.ipv4'" in said
    assert "where its entry point (group 'holdfast.types') is installed" in said


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("acme.ipv4 = acme_types:Gone", "The type 'acme.ipv4' cannot be loaded from acme_types:Gone"),
        ("acme.ipv4 = acme_types:Money", "expected a class of types whose kind is 'acme.ipv4'"),
        ("other.ipv4 = acme_types:Ipv4TypeInfo", "expected a class of types whose kind is 'other.ipv4'"),
    ],
)
def test_a_wrong_entry_point_is_named(tmp_path: Path, entry: str, problem: str) -> None:
    install(tmp_path, f"[holdfast.types]\n{entry}\n")
    kind = entry.split()[0]
    assert problem in ask(tmp_path, f"TypeInformation.from_json({{'kind': '{kind}'}})")


def test_a_package_that_cannot_be_loaded_concerns_only_those_who_ask_for_it(tmp_path: Path) -> None:
    install(tmp_path, "[holdfast.types]\nother.gone = no_such_module:Gone\n")
    point = "__import__('dataclasses').make_dataclass('Point', [('x', int)])"
    assert "Point" in ask(tmp_path, f"resolve({point})")
    said = ask(tmp_path, "resolve(object())")
    assert "is not a type that Holdfast knows" in said and "The type 'other.gone' cannot be loaded" in said
    assert "Unknown kind of type 'nonsense'" in ask(tmp_path, "TypeInformation.from_json({'kind': 'nonsense'})")


def test_a_kind_loads_what_offers_it_and_nothing_else(tmp_path: Path) -> None:
    install(tmp_path, "[holdfast.types]\nacme.ipv4 = acme_types:Ipv4TypeInfo\nother.kind = other:Gone\n")
    (tmp_path / "other.py").write_text("print('loaded')")
    assert ask(tmp_path, ASKS["a stored form"]) == "IPV4\n"
    for kind in ("'nonsense'", "['nonsense']"):
        said = ask(tmp_path, f"TypeInformation.from_json({{'kind': {kind}}})")
        assert "Unknown kind of type" in said and "loaded" not in said.replace("not_loaded", "")


@pytest.mark.parametrize("what", ["__import__('acme_types').Ipv4TypeInfo()", *ASKS.values()])
def test_a_module_of_types_may_ask_for_types_while_it_is_imported(tmp_path: Path, what: str) -> None:
    install(tmp_path, ENTRY_POINTS)
    module = tmp_path / "acme_types.py"
    asks = (
        "from dataclasses import dataclass as _dataclass\nfrom holdfast.common.typeinfo import resolve as _resolve\n"
        "@_dataclass\nclass Point:\n    x: int\nPOINT = _resolve(Point)\n"
    )
    first, rest = module.read_text().split("@register_type", 1)
    module.write_text(f"{first}{asks}@register_type{rest}")
    assert ask(tmp_path, what) == "IPV4\n"


class SpendingByHost(KeyedProcessFunction):
    """Keeps, for each host: its last amount, all of them, and the sum to each other host."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(LAST)
        self.all = runtime_context.get_list_state(ALL)
        self.sums = runtime_context.get_map_state(SUMS)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        _, to, money = value
        self.last.update(money)
        self.all.add(money)
        before = self.sums.get(to)
        total = money.amount + (before.amount if before is not None else 0)
        self.sums.put(to, Money(total, money.currency))
        # Changed after it was handed over: what was stored and yielded is what it was then.
        yield to, money
        money.amount = Decimal("0.00")


LAST = ValueStateDescriptor("last", MONEY)
ALL = ListStateDescriptor("all", MONEY)
SUMS = MapStateDescriptor("sums", IPV4, MONEY)


def euros(amount: str) -> Money:
    return Money(Decimal(amount), "EUR")


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_states_of_every_backend_keep_and_restore_it(backend: str) -> None:
    harness = KeyedOperatorHarness(
        SpendingByHost(), lambda row: row[0], IPV4, backend=backend, output_type=Types.TUPLE([IPV4, MONEY])
    )
    with harness:
        harness.push((HOST, OTHER, euros("1.50"))).push((HOST, OTHER, euros("2.00"))).end_epoch()
        assert harness.output() == [(OTHER, euros("1.50")), (OTHER, euros("2.00"))]
        snapshot = harness.snapshot()
    with KeyedOperatorHarness.restore(
        snapshot, SpendingByHost(), lambda row: row[0], IPV4, backend=backend, output_type=Types.TUPLE([IPV4, MONEY])
    ) as restored:
        restored.push((HOST, HOST, euros("4.00")))
        restored.assert_state(LAST, {HOST: euros("4.00")})
        restored.assert_state(ALL, {HOST: [euros("1.50"), euros("2.00"), euros("4.00")]})
        restored.assert_state(SUMS, {HOST: {OTHER: euros("3.50"), HOST: euros("4.00")}})


def test_it_is_stored_as_the_type_that_it_says() -> None:
    assert serializer_for(IPV4).encode(HOST) == serializer_for(Types.LONG()).encode(int(HOST))
    assert KeyCodec.for_type(IPV4).hash(HOST) == KeyCodec.for_type(Types.LONG()).hash(int(HOST))
    assert schema_of(Types.TUPLE([IPV4])).field("f0").type == Types.LONG().arrow_type()
    assert serializer_for(IPV4).snapshot()["type"] == {"kind": "acme.ipv4"}


def test_defaults_of_avro_are_its_values() -> None:
    fields = [{"name": "n", "type": "int"}, {"name": "at", "type": ACME_TYPES["IPV4"].avro[0], "default": int(HOST)}]
    row = avro_type({"type": "record", "name": "R", "fields": fields})
    assert row.default_of("at")() == HOST
    # Where the package is not installed, a logical type is passed over, as Avro says.
    assert avro_type({"type": "long", "logicalType": "acme.unknown"}) == Types.LONG()


def test_values_that_it_refuses() -> None:
    wrong = Money(Decimal(1), "Euro")
    with pytest.raises(StateTypeError, match=r"MONEY.*'Euro' is no code of a currency"):
        serializer_for(MONEY).encode(wrong)
    with pytest.raises(RowTypeError, match="'Euro' is no code of a currency"):
        row_writer(MONEY)([wrong])
    with pytest.raises(StateTypeError, match="cannot be cast to the declared key type MONEY"):
        KeyCodec.for_type(MONEY).encode(wrong)
    with pytest.raises(StateTypeError, match="cannot be cast to the declared key type IPV4"):
        KeyCodec.for_type(IPV4).encode(5)


def test_it_becomes_no_other_type() -> None:
    for old, new in ((IPV4, Types.LONG()), (Types.LONG(), IPV4), (IPV4, MONEY)):
        snapshot = serializer_for(old).snapshot()
        with pytest.raises(StateMigrationError, match="cannot become"):
            _migration(snapshot, new)


def _migration(snapshot: dict[str, Any], new: TypeInformation) -> Any:
    from holdfast.state.serializers import migration, serializer_from_snapshot

    return migration(serializer_from_snapshot(snapshot), serializer_for(new))


def test_kinds_and_names_belong_to_one_type() -> None:
    class Copied(Ipv4TypeInfo):
        """Has the kind of another."""

    with pytest.raises(ProgramError, match=r"The kind of type 'acme.ipv4' is that of .*Ipv4TypeInfo"):
        register_type(Copied)

    class Renamed(Ipv4TypeInfo):
        kind = "acme.renamed"

    with pytest.raises(ProgramError, match=r"has the names \['ipv4'\], which other types have already"):
        register_type(Renamed)
    assert TypeInformation.from_json({"kind": "acme.ipv4"}) == IPV4
    assert parse_ddl("ipv4") == resolve(IPv4Address) == IPV4


def test_a_type_without_an_answer_cannot_be_made() -> None:
    class Unfinished(LogicalTypeInfo):
        kind = "acme.unfinished"
        label = "UNFINISHED"
        value_class = Unregistered

        @property
        def stored_as(self) -> TypeInformation:
            return Types.LONG()

    with pytest.raises(TypeError, match=r"abstract methods '?from_stored'?, '?to_stored'?"):
        Unfinished()


class Unregistered:
    pass
