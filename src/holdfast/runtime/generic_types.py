"""State of a type that is not declared, in a program that allows none."""

from __future__ import annotations

from holdfast.errors import ProgramError
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.state.descriptors import StateDescriptor

#: Without a declared type these have a form of their own in keyed state.
_MAP_KEY = "map_key"


def check_declared(environment: OperatorEnvironment, descriptor: StateDescriptor, keyed: bool = False) -> None:
    """ProgramError where values of the state would be pickled, and the program has disabled generic types."""
    if environment.spec.generic_types:
        return
    types = {role: one for role, one in descriptor.types().items() if not (keyed and role == _MAP_KEY)}
    if any(one.pickled for one in types.values()):
        raise ProgramError(
            f"{environment.where}: generic types are disabled, and the {descriptor.describe()} would be pickled. "
            "Declare its type in the descriptor, or leave disable_generic_types() out."
        )
