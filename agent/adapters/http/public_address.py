"""Which addresses are public: nothing of this machine, this network, a cloud's metadata, or a way around to them."""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_V4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared between carriers; metadata of Alibaba Cloud
            "127.0.0.0/8",
            "168.63.129.16/32",  # Azure's wire server, a public address by its number
            "169.254.0.0/16",  # link-local; metadata of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments; metadata of Oracle Cloud
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_V6: Final = ipaddress.IPv6Network("2000::/3")  # all that is assigned to the internet; NAT64 and ::ffff:0:0 are outside
_NOT_V6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "2620:4f:8000::/48",
            "3fff::/20",
        ),
    )
)
"""https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry, read 2026-11-21."""


def is_public(address: Address) -> bool:
    """Whether an address belongs to the internet, and holds no other address inside that may not.

    ``ipaddress.is_global`` is not enough: it takes NAT64, 6to4 and some multicast for global.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_V4)
    return address.scope_id is None and address in _V6 and not any(address in network for network in _NOT_V6)
