"""Decoders of high availability: the register, which anybody with access to the manager can write."""

from __future__ import annotations

from atalanta.ha.register import (
    Register,
    RegisterDamaged,
    decode_register,
    encode_register,
    found,
    take_over,
)
from tests.fuzz.target import Target

TOKEN = bytes(range(16))


class RegisterTarget(Target):
    """A register: what is accepted is encoded to the same bytes."""

    name = "register"
    refusals = (RegisterDamaged,)

    def seeds(self) -> list[bytes]:
        first = found("A", 0, TOKEN)
        whole = Register(7, "B", ("A", "B", "Zürich"), 3, TOKEN)
        return [encode_register(each) for each in (first, take_over(first, "A", TOKEN), whole)]

    def run(self, data: bytes) -> None:
        assert encode_register(decode_register(data)) == data
