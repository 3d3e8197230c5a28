"""Where groups are joined: the interface that an address names."""

from __future__ import annotations

import pytest

from atalanta.runtime.net.limits import Limits
from atalanta.runtime.net.multicast import Group, interface_number, receiving_socket

# Too many digits for an interface's number, and for int().
NO_ZONES = ["99999999999", "9" * 5_000, "no-such-if"]


def test_the_number_of_a_zone_is_that_of_the_interface() -> None:
    assert interface_number("ff02::77%3", "") == 3
    assert interface_number("ff02::77%3", "[fe80::1%12]") == 12
    assert interface_number("ff02::77", "") == 0


@pytest.mark.parametrize("zone", NO_ZONES)
def test_a_zone_that_no_interface_has_is_an_error_of_the_group(zone: str) -> None:
    with pytest.raises(OSError, match="no interface with this name"):
        interface_number(f"ff02::77%{zone}", "")
    with pytest.raises(OSError, match=f"cannot join the group ff02::77%{zone[:20]}"):
        receiving_socket(Group("test", f"ff02::77%{zone}", 1, "", -1), Limits())
